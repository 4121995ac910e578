// Package mcp uses the tools of servers that speak the Model Context Protocol: each becomes an action, and each call of it
// passes every gate.
//
//	files, err := mcp.Open(mcp.Config{Name: "files", Server: mcp.Stdio(box, "/srv/mcp/files", "/data")})
//	defer files.Close()
//	imported, err := mcp.Actions(ctx, files, registry)       // the registry that delta.Config.Tools names
//	desk := delta.NewAgent("desk").Grant(imported.Actions...).MustBuild()
//
// Importing grants nothing. What a server says of its tools, the annotations, is taken as a first guess of their risk and of
// the class of their effects, never as a permission; what it says of itself can be overruled ([Config.Classes]) or ignored
// ([Config.Distrust]). Names, descriptions, schemas and results come from elsewhere: they are checked, bounded and marked
// as untrusted.
//
// A tool's version is a hash of all that the server says of it, so that one whose description or schema changes is another
// tool: actions imported before are UNAVAILABLE until they are imported again.
//
// Of a server that runs on this machine ([Stdio]) every process is confined by whoever launches it, which a sandbox does.
package mcp
