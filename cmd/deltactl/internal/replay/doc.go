// Package replay passes recorded tool calls through the real engine and reports what it would have learned and asked:
// the risk of every action, the trust in every agent, and how many calls a threshold would have held for a person.
//
// A recording is text with one JSON object a line, plain or compressed with gzip:
//
//	{"agent":"desk","run":"r1","step":0,"tool":"charge","ok":false,"cost":120}
//
// Tools become actions, every row becomes one governed call of its agent, and the function behind it returns Ok or Err
// as the row says. The engine observes: it decides and records everything and refuses nothing, so every row runs. Rows
// are replayed in the order of the files given and of the lines in them.
//
// Files are read twice, once to learn the agents and their tools and to check every row, once to replay them; what is
// not a regular file is copied to a temporary one. So nothing is reported of a recording that is not sound to its end.
package replay
