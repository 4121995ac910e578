package delta

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// Attachment is something a task brings along for its planner and its functions: an image, audio, any file. It is named by
// its id alone. The ledger records what it is, not what it holds.
type Attachment struct {
	// ID names it within the task, by the rules of [action.CheckName]; "" becomes "attachment-1" and so on. It also counts
	// as a name of Goal.Context, for actions that require it.
	ID string
	// Name is what people call it, at most 200 bytes; it is shown and never opened.
	Name string
	// Type is its media type, such as "image/png"; "" is what the content looks like. Content that looks like something
	// else is refused at Start.
	Type string
	// Data is the content.
	Data []byte
}

// Bounds of what a goal attaches.
const (
	MaxAttachments    = 32  // attachments of one task
	maxAttachmentName = 200 // bytes
)

// AttachmentStore keeps the content of attachments, by the SHA-256 of the content in hexadecimal. What it returns is
// compared with that, so it need not be trusted. Its methods may be called from many goroutines. It decides itself how long
// it keeps what; a task whose content is gone runs on without.
type AttachmentStore interface {
	// Put keeps content; the same again is no error. It must not keep the slice.
	Put(ctx context.Context, sum string, content []byte) error
	// Get returns the content, of which the slice belongs to the caller.
	Get(ctx context.Context, sum string) ([]byte, error)
}

// attachable checks what a goal attaches and returns what is recorded of it.
func (e *Engine) attachable(as []Attachment) (infos []action.AttachmentInfo, faults []error) {
	if len(as) > MaxAttachments {
		return nil, []error{fmt.Errorf("goal attachments: %d, at most %d are taken", len(as), MaxAttachments)}
	}
	seen := map[string]bool{}
	for i, a := range as {
		if a.ID == "" {
			a.ID = fmt.Sprintf("attachment-%d", i+1)
		}
		info, err := e.attachmentInfo(a)
		if err == nil && seen[a.ID] {
			err = errors.New("two attachments have this id; give each its own")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("goal attachment %d (%q): %w", i+1, action.CutTo(a.ID, action.MaxName), err))
		}
		seen[a.ID] = true
		infos = append(infos, info)
	}
	return infos, faults
}

func (e *Engine) attachmentInfo(a Attachment) (action.AttachmentInfo, error) {
	var faults []error
	if err := action.CheckName(a.ID); err != nil {
		faults = append(faults, err)
	}
	if len(a.Name) > maxAttachmentName || action.Cut(a.Name) != a.Name {
		faults = append(faults, fmt.Errorf("its name is not UTF-8, or longer than %d bytes", maxAttachmentName))
	}
	if n := int64(len(a.Data)); n == 0 || n > e.cfg.MaxAttachment {
		faults = append(faults, fmt.Errorf("it has %d bytes, want 1 to %d; raise Config.MaxAttachment, or attach less", n, e.cfg.MaxAttachment))
	}
	kind, err := mediaType(a.Type, a.Data)
	if err != nil {
		faults = append(faults, err)
	}
	sum := sha256.Sum256(a.Data)
	return action.AttachmentInfo{ID: a.ID, Name: a.Name, Type: kind, Size: int64(len(a.Data)), SHA256: hex.EncodeToString(sum[:])}, errors.Join(faults...)
}

// keepAttachments stores the content of what a goal attaches, before its task exists; undo gives it up where the task does
// not come to be.
func (e *Engine) keepAttachments(ctx context.Context, s engine.TaskState, as []Attachment) (undo func(), err error) {
	undo = func() {}
	if s.Brought == nil || len(as) == 0 {
		return undo, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.StoreTimeout)
	defer cancel()
	sealed, err := e.sealAttachments(ctx, &s, as)
	if err != nil {
		return undo, err
	}
	if m, ours := e.cfg.Attachments.(*inMemory); ours && m.want(s.Agent+idSeparator+s.ID, s.Brought.Attachments) {
		undo = func() { e.releaseAttachments(s.Agent, s.ID) }
	}
	for i, info := range s.Brought.Attachments {
		data := slices.Clone(as[i].Data)
		if sealed != nil {
			data = sealed[i]
		}
		_, err := safely(func() (struct{}, error) { return struct{}{}, e.cfg.Attachments.Put(ctx, info.SHA256, data) })
		if err != nil {
			undo()
			return undo, fmt.Errorf("attachment %q could not be kept: %w", info.ID, err)
		}
	}
	return undo, nil
}

// sealAttachments seals what a goal about somebody attaches, and notes it in what is recorded; nil where the goal is about
// nobody. The same content for the same place is sealed alike: who delegates again asks for the same child.
func (e *Engine) sealAttachments(ctx context.Context, s *engine.TaskState, as []Attachment) (sealed [][]byte, err error) {
	if s.Subject == "" {
		return nil, nil
	}
	agent, space := vaultOf(s)
	data, err := e.dataKey(ctx, agent, space, true, s.Vault == "")
	if err != nil {
		return nil, keyUnavailable(err)
	}
	for i := range as {
		info := &s.Brought.Attachments[i]
		text := []byte(data.SealAlike(string(as[i].Data), aboutAttachment(s.Agent, s.ID, info.ID)))
		sum := sha256.Sum256(text)
		info.SHA256, info.Sealed = hex.EncodeToString(sum[:]), true
		sealed = append(sealed, text)
	}
	return sealed, nil
}

func aboutAttachment(agent, task, id string) string {
	return "attachment\n" + agent + "\n" + task + "\n" + id
}

// attachment reads the content of an attachment of the task.
func (t *Task) attachment(ctx context.Context, info action.AttachmentInfo) (Attachment, error) {
	a, err := t.engine.attachment(ctx, info)
	if err != nil || !info.Sealed {
		return a, err
	}
	text, err := t.open(ctx, string(a.Data), aboutAttachment(t.agent.name, t.local, info.ID))
	if err != nil {
		return Attachment{}, fmt.Errorf("attachment %q cannot be opened: %w", info.ID, err)
	}
	a.Data = []byte(text)
	return a, nil
}

// releaseAttachments gives up the content that a task held in memory.
func (e *Engine) releaseAttachments(agent, task string) {
	if m, ours := e.cfg.Attachments.(*inMemory); ours {
		m.release(agent + idSeparator + task)
	}
}

// attachment reads the content of an attachment, and makes sure that it is what the task was given.
func (e *Engine) attachment(ctx context.Context, info action.AttachmentInfo) (Attachment, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.StoreTimeout)
	defer cancel()
	data, err := safely(func() ([]byte, error) { return e.cfg.Attachments.Get(ctx, info.SHA256) })
	if err != nil {
		return Attachment{}, fmt.Errorf("attachment %q cannot be read: %w", info.ID, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != info.SHA256 {
		return Attachment{}, fmt.Errorf("attachment %q is not what the task was given: its content has changed", info.ID)
	}
	return Attachment{ID: info.ID, Name: info.Name, Type: info.Type, Data: data}, nil
}

// attachmentsKept bounds what the store in memory keeps, in bytes.
const attachmentsKept = 256 << 20

// inMemory is the store in memory. Content lives as long as a task that this engine opened may want it.
type inMemory struct {
	mu      sync.Mutex
	content map[string][]byte
	wanted  map[string]int             // by how many tasks
	of      map[string]map[string]bool // task → sums
	bytes   int64
}

func newInMemory() *inMemory {
	return &inMemory{content: map[string][]byte{}, wanted: map[string]int{}, of: map[string]map[string]bool{}}
}

// Put implements [AttachmentStore].
func (m *inMemory) Put(_ context.Context, sum string, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, have := m.content[sum]; have {
		return nil
	}
	if m.bytes+int64(len(content)) > attachmentsKept {
		m.sweep()
	}
	if m.bytes+int64(len(content)) > attachmentsKept {
		return fmt.Errorf("running tasks hold %d bytes of attachments, the most that is kept in memory is %d; end tasks, or set Config.Attachments", m.bytes, attachmentsKept)
	}
	m.content[sum] = content
	m.bytes += int64(len(content))
	return nil
}

// Get implements [AttachmentStore].
func (m *inMemory) Get(_ context.Context, sum string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.content[sum]
	if !ok {
		return nil, errors.New("its content is not kept here: the task was started by another process, or has ended; set Config.Attachments to a store that both use")
	}
	return slices.Clone(content), nil
}

// want notes that a task needs its content, until release. It is false where that was noted before.
func (m *inMemory) want(task string, infos []action.AttachmentInfo) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[task] != nil {
		return false
	}
	m.of[task] = map[string]bool{}
	for _, i := range infos {
		if !m.of[task][i.SHA256] {
			m.of[task][i.SHA256] = true
			m.wanted[i.SHA256]++
		}
	}
	return true
}

// release gives up what a task that ended held. The content goes when room is needed or nobody wants it.
func (m *inMemory) release(task string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for sum := range m.of[task] {
		if m.wanted[sum]--; m.wanted[sum] <= 0 {
			delete(m.wanted, sum)
		}
	}
	delete(m.of, task)
	m.sweep()
}

// sweep drops what no task wants; the caller holds the lock.
func (m *inMemory) sweep() {
	maps.DeleteFunc(m.content, func(sum string, content []byte) bool {
		if m.wanted[sum] > 0 {
			return false
		}
		m.bytes -= int64(len(content))
		return true
	})
}
