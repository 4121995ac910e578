package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// exportVersion is the version of the format below; a ledger whose beginning was pruned has the next one.
const exportVersion = 1

// Exporter writes one ledger as lines of JSON: one that names it, one for each record, one that closes it.
//
//	{"ledger":1,"agent":"support","task":"t1"}
//	{"seq":1,"at":1700000000000000,"link":"…","event":{"v":1,"type":"task_started",…}}
//	{"end":1,"root":"…"}
//
// Of one whose beginning was pruned the first line is {"ledger":2,"agent":"support","base":{"seq":9,"link":"…","tree":["…"]}}.
// Every line has this form to the byte. Records that were not sealed yet are sealed here, so that all that is exported is
// under the root. Several ledgers may follow each other in one file.
type Exporter struct {
	w           io.Writer
	agent, task string
	chain       *Verifier
	log         Log
	head        string
	buf         []byte
	err         error
}

// NewExporter begins the export of the ledger of a task, or of the agent itself where task is "".
func NewExporter(w io.Writer, agent, task string) *Exporter {
	return NewExporterFrom(w, agent, task, Base{})
}

// NewExporterFrom is NewExporter for a ledger whose beginning may have been pruned, see [BaseIn]. A base that no ledger has is
// the error of everything that follows.
func NewExporterFrom(w io.Writer, agent, task string, b Base) *Exporter {
	x := &Exporter{w: w, agent: agent, task: task}
	log, err := b.Log()
	if err != nil {
		x.err = err
		return x
	}
	x.log, x.chain, x.head = *log, b.chain(agent, task), b.Link
	if b.Seq == 0 {
		x.head = Genesis(agent, task)
	}
	x.line(appendFirst(x.buf, agent, task, b))
	return x
}

// chain is the verifier of what comes behind the base.
func (b Base) chain(agent, task string) *Verifier {
	if b.Seq == 0 {
		return NewVerifier(Genesis(agent, task))
	}
	return Resume(b.Seq, b.Link)
}

func appendFirst(dst []byte, agent, task string, b Base) []byte {
	version := exportVersion
	if b.Seq > 0 {
		version++
	}
	t := text{b: fmt.Appendf(dst, `{"ledger":%d`, version)}
	t.must("agent", agent)
	t.str("task", task)
	if b.Seq > 0 {
		base, _ := json.Marshal(b) // plain fields: cannot fail
		t.name("base")
		t.b = append(t.b, base...)
	}
	return append(t.b, '}')
}

func (x *Exporter) line(b []byte) {
	if x.err == nil {
		_, x.err = x.w.Write(append(b, '\n'))
	}
	x.buf = b[:0]
}

// Add writes the next record. A record that does not fit those before it is a *BrokenError and is not written. The first
// error is final.
func (x *Exporter) Add(r txn.Stored) error {
	if x.err != nil {
		return x.err
	}
	if x.err = x.chain.Add(r); x.err != nil {
		return x.err
	}
	if _, err := Decode(r.Val); err != nil {
		x.err = fmt.Errorf("record %d: %w", r.Seq, err)
		return x.err
	}
	if r.Link == "" {
		r.Link = Link(x.head, r)
	}
	x.head = r.Link
	if x.err = x.log.Add(r.Link); x.err == nil {
		x.line(appendRecord(x.buf, r))
	}
	return x.err
}

// End closes the export and returns its head, to be signed and kept elsewhere.
func (x *Exporter) End() (Head, error) {
	if x.err != nil {
		return Head{}, x.err
	}
	h, err := x.log.Head(x.agent, x.task)
	if err != nil {
		return Head{}, err
	}
	if x.line(appendEnd(x.buf, h)); x.err != nil {
		return Head{}, x.err
	}
	x.err = errors.New("the export is closed")
	return h, nil
}

func appendRecord(b []byte, r txn.Stored) []byte {
	t := text{b: append(b, '{')}
	t.int("seq", r.Seq)
	t.int("at", r.At)
	t.must("link", r.Link)
	t.name("event")
	return append(append(t.b, r.Val...), '}')
}

func appendEnd(b []byte, h Head) []byte {
	t := text{b: append(b, '{')}
	t.int("end", h.Size)
	t.must("root", h.Root.String())
	return append(t.b, '}')
}

// Exported is one ledger of an export, found whole.
type Exported struct {
	Agent, Task string
	Base        Base         // of its beginning, where that was pruned
	Records     []txn.Stored // behind it
	Log         *Log
	Head        Head
}

// Record returns a record by its number, and the link of the one before it; false where it is not there.
func (x *Exported) Record(seq int64) (r txn.Stored, prev string, ok bool) {
	i := seq - x.Base.Seq - 1
	if i < 0 || i >= int64(len(x.Records)) {
		return r, "", false
	}
	switch {
	case i > 0:
		prev = x.Records[i-1].Link
	case x.Base.Seq > 0:
		prev = x.Base.Link
	default:
		prev = Genesis(x.Agent, x.Task)
	}
	return x.Records[i], prev, true
}

// ExportError locates what is wrong with an export.
type ExportError struct {
	Line int    // 1 is the first
	Name string // of the ledger, "" before the first
	Err  error  // a *BrokenError where a record is not what it should be
}

// Error names the place.
func (e *ExportError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("line %d, ledger %s: %v", e.Line, e.Name, e.Err)
}

// Unwrap returns the cause.
func (e *ExportError) Unwrap() error { return e.Err }

// maxLine bounds a line of an export, in bytes.
const maxLine = 64 << 20

// Importer reads exports ledger by ledger and checks every byte of them.
type Importer struct {
	r    *bufio.Reader
	n    int    // line
	name string // of the ledger being read
	seen map[string]bool
}

// NewImporter returns an importer of what Exporters wrote.
func NewImporter(r io.Reader) *Importer {
	return &Importer{r: bufio.NewReaderSize(r, 64<<10), seen: map[string]bool{}}
}

// Next returns the next ledger, io.EOF behind the last one. Any other error is an *ExportError or one of reading; what
// comes behind it cannot be read.
func (i *Importer) Next() (*Exported, error) {
	x, chain, err := i.begin()
	if err != nil {
		return nil, err
	}
	for {
		line, err := i.line()
		if errors.Is(err, io.EOF) {
			return nil, i.fail(&BrokenError{CutOff, x.Log.size + 1, x.Log.size + 1}, "the export ends before its closing line")
		}
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(line, `{"end":`) {
			return x, i.end(x, line)
		}
		r, err := parseRecord(line)
		if err != nil {
			return nil, i.fail(err, fmt.Sprintf("record %d", x.Log.size+1))
		}
		if err := chain.Add(r); err != nil {
			return nil, i.fail(err, "")
		}
		if _, err := Decode(r.Val); err != nil {
			return nil, i.fail(err, fmt.Sprintf("record %d", r.Seq))
		}
		if err := x.Log.Add(r.Link); err != nil {
			return nil, i.fail(err, "")
		}
		x.Records = append(x.Records, r)
	}
}

func (i *Importer) begin() (*Exported, *Verifier, error) {
	i.name = ""
	line, err := i.line()
	if errors.Is(err, io.EOF) && i.n == 1 {
		return nil, nil, i.fail(errors.New("the file is empty"), "")
	}
	if err != nil {
		return nil, nil, err
	}
	x := &Exported{}
	var h struct {
		Ledger      int
		Agent, Task string
		Base        Base
	}
	if err := json.Unmarshal([]byte(line), &h); err != nil {
		return nil, nil, i.fail(errors.New("not the first line of an exported ledger"), "")
	}
	if h.Ledger != exportVersion && h.Ledger != exportVersion+1 {
		return nil, nil, i.fail(fmt.Errorf("not the first line of an exported ledger of version %d or %d", exportVersion, exportVersion+1), "")
	}
	x.Agent, x.Task, x.Base = h.Agent, h.Task, h.Base
	if x.Log, err = h.Base.Log(); err != nil {
		return nil, nil, i.fail(err, "")
	}
	if string(appendFirst(nil, h.Agent, h.Task, h.Base)) != line {
		return nil, nil, i.fail(errors.New("the first line of a ledger is not in canonical form"), "")
	}
	i.name = NameOf(h.Agent, h.Task)
	if i.seen[i.name] {
		return nil, nil, i.fail(errors.New("the ledger is there twice"), "")
	}
	i.seen[i.name] = true
	return x, h.Base.chain(h.Agent, h.Task), nil
}

// end checks the closing line against what was read.
func (i *Importer) end(x *Exported, line string) error {
	var e struct{ End int64 }
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return i.fail(errors.New("the closing line is not JSON"), "")
	}
	if e.End > x.Log.size {
		return i.fail(&BrokenError{CutOff, x.Log.size + 1, e.End}, "")
	}
	h, err := x.Log.Head(x.Agent, x.Task)
	if err != nil {
		return i.fail(err, "")
	}
	if string(appendEnd(nil, h)) != line {
		return i.fail(errors.New("the closing line does not follow from the records"), "")
	}
	if err := x.based(); err != nil {
		return i.fail(err, "")
	}
	x.Head = h
	return nil
}

// based checks that what a ledger begins with is what the checkpoint says, where that is among its records: of a ledger that
// was pruned and exported piece by piece, it may be in a later piece.
func (x *Exported) based() error {
	e, err := CheckpointIn(x.Records)
	if x.Base.Seq == 0 || err != nil || e == nil {
		return nil
	}
	b, err := BaseOf(e)
	if err != nil {
		return err
	}
	if b.Link != x.Base.Link || !slices.Equal(b.Tree, x.Base.Tree) {
		return errors.New("its first line is not what the checkpoint among its records says")
	}
	return nil
}

func (i *Importer) fail(err error, where string) error {
	if where != "" {
		err = fmt.Errorf("%s: %w", where, err)
	}
	return &ExportError{i.n, i.name, err}
}

// line returns the next line without its end; one that has none is not whole.
func (i *Importer) line() (string, error) {
	i.n++
	var b []byte
	for {
		part, err := i.r.ReadSlice('\n')
		b = append(b, part...)
		switch {
		case len(b) > maxLine:
			return "", i.fail(fmt.Errorf("the line is longer than %d bytes", maxLine), "")
		case err == nil:
			return string(b[:len(b)-1]), nil
		case errors.Is(err, io.EOF) && len(b) == 0:
			return "", io.EOF
		case errors.Is(err, io.EOF):
			return "", i.fail(errors.New("the line is not whole: it has no end"), "")
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}

// parseRecord reads what appendRecord wrote and nothing else; the event is not looked at.
func parseRecord(line string) (txn.Stored, error) {
	var r txn.Stored
	wrong := errors.New(`the line is not {"seq":…,"at":…,"link":"…","event":{…}}`)
	rest, ok := strings.CutPrefix(line, `{"seq":`)
	seq, rest, ok1 := strings.Cut(rest, `,"at":`)
	at, rest, ok2 := strings.Cut(rest, `,"link":"`)
	link, rest, ok3 := strings.Cut(rest, `","event":`)
	val, ok4 := strings.CutSuffix(rest, "}")
	if !ok || !ok1 || !ok2 || !ok3 || !ok4 {
		return r, wrong
	}
	var err1, err2 error
	r.Seq, err1 = strconv.ParseInt(seq, 10, 64)
	r.At, err2 = strconv.ParseInt(at, 10, 64)
	r.Link, r.Val = link, val
	if err1 != nil || err2 != nil || link == "" || string(appendRecord(nil, r)) != line {
		return r, wrong
	}
	return r, nil
}
