package action

import "strings"

// AttachmentInfo says what an attachment of a task is. The content is kept elsewhere; this is what is recorded of it.
type AttachmentInfo struct {
	ID     string `json:"id"`             // within the task; all that a planner or a function names
	Name   string `json:"name,omitempty"` // what people call it; never a path
	Type   string `json:"type"`           // its media type, such as image/png; the content was found to be of it
	Size   int64  `json:"size"`           // bytes
	SHA256 string `json:"sha256"`         // of the content as it is kept, in hexadecimal
	// Sealed says that it is kept encrypted: the task works on somebody's data.
	Sealed bool `json:"sealed,omitempty"`
}

// Kinds of attachments.
const (
	KindImage = "image"
	KindAudio = "audio"
	KindFile  = "file"
)

// Kind returns what the attachment is for a planner: an image, audio, or a file. A drawing in XML is a file: what reads it
// as a picture runs what stands in it.
func (a AttachmentInfo) Kind() string {
	switch kind, form, _ := strings.Cut(a.Type, "/"); {
	case kind == KindImage && form != "svg+xml":
		return KindImage
	case kind == KindAudio:
		return KindAudio
	}
	return KindFile
}

// Verdict says whether the goal of a task was reached. It is somebody's word, and not the same as calls that were Ok: all
// of them may have been, and the goal missed.
type Verdict string

// The verdicts.
const (
	Reached    Verdict = "reached"
	NotReached Verdict = "not_reached"
	Abandoned  Verdict = "abandoned" // given up before it could be known
)

// Valid reports whether v is one of the verdicts.
func (v Verdict) Valid() bool { return v == Reached || v == NotReached || v == Abandoned }

// Concluder says whose word a verdict is.
type Concluder string

// Who concludes tasks.
const (
	ByPlanner  Concluder = "planner"  // the planner of a run said so
	ByFunction Concluder = "function" // an action's function found out
	ByProgram  Concluder = "program"  // the program that holds the task
	ByPerson   Concluder = "person"   // somebody whose identity is known
)

// Conclusion is how the goal of a task ended.
type Conclusion struct {
	Verdict  Verdict   `json:"verdict"`
	Reason   string    `json:"reason,omitempty"`
	By       Concluder `json:"by"`
	Identity string    `json:"identity,omitempty"` // of the person
	Intent   string    `json:"intent,omitempty"`   // of the call whose function said so
	At       int64     `json:"at"`                 // by the clock of the worker that wrote it, µs since 1970
}
