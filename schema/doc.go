// Package schema is the strict edge: everything a planner, a caller or a tool hands over as JSON passes here first, and
// what passes is one exact value with one text.
//
// [Canonical] parses bytes without a schema. It refuses what two parsers could read differently: duplicate keys, invalid
// UTF-8, lone surrogates, numbers that do not survive, deep nesting, trailing data. What it accepts has a canonical form
// (see [Canonical]) that is equal exactly where the values are equal, so it can be hashed, compared and approved.
//
// A [Schema] comes from a Go type ([Reflect], [ReflectOutput]), from JSON that our user wrote ([Declared]), or from
// somewhere else ([Foreign]). It is immutable, safe for concurrent use, and says whether a document may go on
// ([Schema.Check], [Schema.CheckOutput]). A keyword that would be ignored is an error when the schema is made: a
// constraint that nobody enforces is worse than none.
//
// # One pass, two judges
//
// A schema of our own declarations is compiled into a pass ([Schema.Pass]): edge, names, schema and canonical form in one
// walk over the bytes, without a tree and without allocating. What it refuses goes to two judges, who say what is wrong: a
// compiled form of the schema, exact on numbers, in time linear in the document, with its faults in a stable order, and
// gojsonschema, on an equivalent schema in which numbers compare exactly; both must agree. A schema that has no pass
// ([Schema.Compiled]) is judged by them alone. Foreign schemas, with all the keywords of 2020-12, are judged by
// santhosh-tekuri/jsonschema behind a loader that refuses to load. A panic in any of them is a refusal.
//
// # Paths
//
// Fields are named by dot-separated paths: "orderId", "customer.id", "entries.*.path", where * stands for any element of
// an array or any value of a map. A dot, star or backslash inside a name is written with a backslash before it. Places in
// failures are JSON pointers.
//
// The package decides nothing else: it reads no clock, opens no file, fetches no reference.
package schema
