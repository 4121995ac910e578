package schema

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxExpanded bounds a foreign schema by the number of values in it, every reference counted as what it refers to: a few
// lines can otherwise stand for more work than any machine will do.
const maxExpanded = 20_000

// survey walks a foreign schema before any library sees it.
type survey struct {
	root  any
	sizes map[string]int // 0 while on the way
}

// dataKeywords hold values, not schemas.
var dataKeywords = []string{"const", "enum", "default", "examples", "example"}

// mapKeywords hold schemas by name, so that the names in them are no keywords.
var mapKeywords = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}

func lintForeign(root any) error {
	if !isSchema(root) {
		return errors.New("schema at #: want an object, true or false")
	}
	s := survey{root: root, sizes: map[string]int{}}
	_, err := s.size("", root, false)
	return err
}

// size returns the expanded size of the value at a place; names says that its members are names, not keywords.
func (s *survey) size(place string, v any, names bool) (int, error) {
	if n, seen := s.sizes[place]; seen {
		if n == 0 {
			return 0, fmt.Errorf("schema at #%s: reference is cyclic; schemas from elsewhere must not recurse", clip(place, maxPointer))
		}
		return n, nil
	}
	s.sizes[place] = 0
	total := 1
	add := func(at string, v any, names bool) error {
		n, err := s.size(at, v, names)
		if total += n; err == nil && total > maxExpanded {
			err = fmt.Errorf("schema at #%s: stands for more than %d values once its references are followed", clip(place, maxPointer), maxExpanded)
		}
		return err
	}
	var err error
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if err = add(place+"/"+strconv.Itoa(i), e, false); err != nil {
				return 0, err
			}
		}
	case map[string]any:
		for _, name := range sortedNames(v) {
			at := place + "/" + pointerToken(name)
			if names {
				err = add(at, v[name], false)
			} else {
				err = s.keyword(at, name, v[name], add)
			}
			if err != nil {
				return 0, err
			}
		}
	}
	s.sizes[place] = total
	return total, nil
}

func (s *survey) keyword(at, name string, v any, add func(string, any, bool) error) error {
	text, isText := v.(string)
	fault := func(format string, args ...any) error {
		return fmt.Errorf("schema at #%s: %s", clip(at, maxPointer), fmt.Sprintf(format, args...))
	}
	switch {
	case slices.Contains(dataKeywords, name):
		return nil
	case (name == "$dynamicRef" || name == "$recursiveRef") && isText:
		return fault("%s is not supported in schemas from elsewhere", name)
	case (name == "$id" || name == "id") && isText && at != "/"+name:
		return fault("%s below the root is not supported in schemas from elsewhere", name)
	case name == "$schema" && isText && !slices.Contains(foreignDialects, strings.TrimSuffix(text, "#")):
		return fault("unknown dialect %s", quote(text))
	case name == "$ref" && isText:
		place, ok := refPlace(text)
		if !ok {
			return fault("reference %s is not local; want \"#/…\", nothing is fetched", quote(text))
		}
		target, ok := lookup(s.root, place)
		if !ok || !isSchema(target) {
			return fault("there is no schema at #%s", clip(place, maxPointer))
		}
		return add(place, target, false)
	}
	return add(at, v, slices.Contains(mapKeywords, name))
}

var foreignDialects = append([]string{"http://json-schema.org/draft-04/schema", "http://json-schema.org/schema",
	"https://json-schema.org/schema"}, dialects...)

// foreign judges by santhosh-tekuri/jsonschema. It cannot be stopped, so a document is first put to the compiled schema,
// which applies every branch and counts; what it says does not matter.
type foreign struct {
	schema *jsonschema.Schema
	root   *node
	limit  int // of steps
}

// refuser is the loader that loads nothing.
type refuser struct{}

func (refuser) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not fetched: references must be local", quote(url))
}

func newForeign(tree any) (j *foreign, err error) {
	defer func() {
		if r := recover(); r != nil {
			j, err = nil, fmt.Errorf("schema cannot be compiled: %v", r)
		}
	}()
	root := compile(tree)
	if m, ok := tree.(map[string]any); ok { // its own name would only change what its references are relative to
		tree = without(m, "$id", "id")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(refuser{})
	c.AssertFormat()
	const name = "schema:root"
	if err := c.AddResource(name, tree); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &foreign{schema: s, root: root, limit: maxSteps}, nil
}

func without(m map[string]any, names ...string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if _, isText := v.(string); !isText || !slices.Contains(names, k) {
			out[k] = v
		}
	}
	return out
}

func (j *foreign) judge(tree any) (faults []fault) {
	defer recoverFault(&faults)
	c := checker{limit: j.limit, quiet: 1}
	if _, done := c.run(j.root, tree); !done {
		return tooManySteps()
	}
	err := j.schema.Validate(tree)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []fault{{"", clip(err.Error(), maxPointer)}}
	}
	j.leaves(invalid, message.NewPrinter(language.English), &faults)
	slices.SortFunc(faults, func(a, b fault) int { return strings.Compare(a.place+"\xff"+a.text, b.place+"\xff"+b.text) })
	faults = slices.Compact(faults)
	if len(faults) > maxFaults {
		faults = faults[:maxFaults]
	}
	return faults
}

// maxLeaves bounds the faults that are rendered before they are sorted; beyond it which are shown is the library's choice.
const maxLeaves = 2000

func (j *foreign) leaves(e *jsonschema.ValidationError, p *message.Printer, faults *[]fault) {
	if len(*faults) >= maxLeaves {
		return
	}
	if len(e.Causes) == 0 {
		var b strings.Builder
		for _, token := range e.InstanceLocation {
			b.WriteString("/" + pointerToken(token))
		}
		*faults = append(*faults, reworded(b.String(), e.ErrorKind, p)...)
	}
	for _, cause := range e.Causes {
		j.leaves(cause, p, faults)
	}
}

// reworded says in our words what the library says with the value, which may be secret and of any length, and puts what
// is wrong with a member at its place.
func reworded(place string, k jsonschema.ErrorKind, p *message.Printer) []fault {
	text := ""
	switch k := k.(type) {
	case *kind.Required:
		return perName(place, k.Missing, "is required")
	case *kind.AdditionalProperties:
		return perName(place, k.Properties, "is not a known property")
	case *kind.FalseSchema:
		text = "no value is allowed here"
	case *kind.Type:
		text = "want " + strings.Join(k.Want, " or ") + ", got " + k.Got
	case *kind.Enum:
		allowed := make([]string, len(k.Want))
		for i, v := range k.Want {
			allowed[i] = canonicalText(v)
		}
		text = (&checker{}).notAllowed(allowed)
	case *kind.Const:
		text = "want " + canonicalText(k.Want)
	case *kind.Format:
		text = "is not a valid " + k.Want
	case *kind.Pattern:
		text = "does not match the pattern " + k.Want
	case *kind.Minimum:
		text = "want at least " + number(k.Want)
	case *kind.Maximum:
		text = "want at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		text = "want more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		text = "want less than " + number(k.Want)
	case *kind.MultipleOf:
		text = "want a multiple of " + number(k.Want)
	case *kind.ContentEncoding, *kind.ContentMediaType, *kind.ContentSchema, *kind.InvalidJsonValue:
		text = "is not as the schema says"
	default:
		text = k.LocalizedString(p)
	}
	return []fault{{clip(place, maxPointer), clip(text, maxPointer)}}
}

func perName(place string, names []string, text string) []fault {
	var out []fault
	for _, name := range names[:min(len(names), maxFaults)] {
		out = append(out, fault{clip(place+"/"+pointerToken(name), maxPointer), text})
	}
	return out
}

// number writes a bound that was written as a decimal.
func number(r *big.Rat) string {
	if r.IsInt() {
		return clip(r.Num().String(), maxShown)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
