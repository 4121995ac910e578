// Package skills reads skills: folders with a SKILL.md, which tells an agent how a kind of work is done here. The form is
// that of the Agent Skills format: a front matter in YAML with name and description, then Markdown; other files of the
// folder are read by name as the text refers to them.
//
//	skills/
//	  refunds/
//	    SKILL.md          ---
//	    references/…      name: refunds
//	                      description: How refunds are decided; read it before refunding anything.
//	                      ---
//	                      …
//
// A [Library] is told where such folders lie; everything else names a skill, never a path. Nothing outside a skill's own
// folder can be read through it: no "..", no absolute path, no symbolic link that leads out. Listing reads the front
// matter alone, the text is read when somebody uses it, and both have limits.
//
// What a skill says is text for a planner. It grants nothing, and scripts in its folder are never run by this package.
package skills
