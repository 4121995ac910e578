package schema_test

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/seed-ab2cfece/delta-agents/schema"
)

type ProcessOrder struct {
	OrderID string `json:"orderId" jsonschema:"pattern=^ORD-[0-9]+$"`
	Amount  int64  `json:"amount" jsonschema:"minimum=1"`
	Card    string `json:"card,omitempty" delta:"secret"`
}

// A schema of a Go type refuses what the type cannot hold and what its tags forbid, and says where.
func ExampleReflect() {
	s, err := schema.Reflect(reflect.TypeFor[ProcessOrder]())
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, _ := s.Check([]byte(`{"orderId": "ORD-42", "amount": 1.2e3}`))
	fmt.Println(doc.Text())
	for _, in := range []string{
		`{"orderId": "ORD-42", "amount": 0}`,
		`{"orderId": "ORD-42", "amonut": 1}`,
		`{"orderId": "ORD-42", "OrderID": "ORD-43", "amount": 1}`,
		`{"orderId": "ORD-42", "amount": 1, "amount": 2}`,
	} {
		_, failure := s.Check([]byte(in))
		fmt.Println(failure)
	}
	fmt.Println(s.Secrets())
	// Output:
	// {"amount":1200,"orderId":"ORD-42"}
	// INPUT_INVALID: /amount want at least 1
	// INPUT_INVALID: /amount is required; /amonut is not a known property, did you mean "amount"?
	// INPUT_MALFORMED: /OrderID differs only in case from the property "orderId"
	// INPUT_MALFORMED: duplicate member name "amount" at byte 35
	// [card]
}

// Pass is Check for those who need no words: one walk over the bytes, into a buffer that is used again.
func ExampleSchema_Pass() {
	s, err := schema.Reflect(reflect.TypeFor[ProcessOrder]())
	if err != nil {
		fmt.Println(err)
		return
	}
	buf := make([]byte, 0, 1024)
	for _, in := range []string{`{"orderId": "ORD-42", "amount": 1.2e3}`, `{"orderId": "ORD-42", "amount": 0}`} {
		var ok bool
		buf, ok = s.Pass(buf[:0], []byte(in))
		fmt.Printf("%v %s\n", ok, buf)
	}
	// Output:
	// true {"amount":1200,"orderId":"ORD-42"}
	// false
}

// The canonical form is equal exactly where the values are.
func ExampleCanonical() {
	for _, in := range []string{`{"b": 1.50, "a": 1e3}`, `9007199254740993`, `1e1000001`} {
		doc, failure := schema.Canonical([]byte(in), schema.DefaultLimit)
		if failure != nil {
			fmt.Println(failure)
			continue
		}
		fmt.Println(doc.Text())
	}
	// Output:
	// {"a":1000,"b":1.5}
	// 9007199254740993
	// INPUT_MALFORMED: number is too large for a 64-bit float at byte 0
}

// A declared schema may hold only what is enforced.
func ExampleDeclared() {
	_, err := schema.Declared([]byte(`{"type": "object", "requird": ["id"], "properties": {"id": {"$ref": "https://example.com/id"}}}`))
	fmt.Println(err)
	// Output:
	// schema at #/properties/id/$ref: reference "https://example.com/id" is not local; want "#/…", nothing is fetched
	// schema at #/requird: unknown keyword "requird", did you mean "required"?
}

// What a planner is shown names the values that satisfy.
func ExampleNarrow() {
	s, err := schema.Declared([]byte(`{"type": "object", "properties": {"orderId": {"type": "string"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := schema.Narrow(s, []schema.Allowed{{
		Fields: []string{"orderId"},
		Tuples: [][]json.RawMessage{{json.RawMessage(`"ORD-2"`)}, {json.RawMessage(`"ORD-1"`)}},
	}})
	fmt.Println(string(text), err)
	// Output:
	// {"properties":{"orderId":{"enum":["ORD-1","ORD-2"],"type":"string"}},"required":["orderId"],"type":"object"} <nil>
}

// A schema from elsewhere is checked with all the keywords of its draft, and cannot make the engine fetch anything.
func ExampleForeign() {
	_, err := schema.Foreign([]byte(`{"properties": {"a": {"$ref": "file:///etc/passwd"}}}`))
	fmt.Println(err)
	s, err := schema.Foreign([]byte(`{"type": "object", "properties": {"wait": {"type": "string", "format": "duration"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, failure := s.Check([]byte(`{"wait": "soon"}`))
	fmt.Println(failure)
	// Output:
	// schema at #/properties/a/$ref: reference "file:///etc/passwd" is not local; want "#/…", nothing is fetched
	// INPUT_INVALID: /wait is not a valid duration
}

// Fields are bound by their paths, if they exist and are of one type.
func ExampleSchema_Kind() {
	s, err := schema.Declared([]byte(`{"type": "object", "properties": {
		"entries": {"type": "array", "items": {"type": "object", "properties": {"path": {"type": "string"}}}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Kind("entries.*.path"))
	fmt.Println(s.Kind("entries.*.pth"))
	// Output:
	// string <nil>
	//  field "entries.*.pth": "entries.*" has no property "pth", did you mean "path"?
}

// Secrets are replaced before a document is shown or recorded.
func ExampleRedact() {
	s, err := schema.Reflect(reflect.TypeFor[ProcessOrder]())
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, _ := s.Check([]byte(`{"orderId": "ORD-42", "amount": 1, "card": "4111"}`))
	fmt.Println(schema.Redact(doc, s.Secrets(), func(path, text string) string { return "secret " + path }).Text())
	// Output:
	// {"amount":1,"card":"secret card","orderId":"ORD-42"}
}
