package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

const (
	recordVersion = 1
	maxRecord     = 32 << 20 // bytes
	lockTimeout   = 5 * time.Second
	// maxKept limits the resources, templates and prompts in a record, each.
	maxKept = 1000
)

// record is what is cached about a server. Its file is named by the server's
// hash. The definitions for the model come from here, so that they are identical
// whether the server runs or not.
type record struct {
	Version   int               `json:"version"`
	Name      string            `json:"name"`
	Known     Known             `json:"known"`
	Info      Info              `json:"info"`
	Tools     []pinnedTool      `json:"tools"`
	Changed   []pinnedTool      `json:"changed,omitempty"` // current definitions of blocked tools
	Pins      map[string]string `json:"pins"`              // of every tool ever accepted, by name
	Skipped   []string          `json:"skipped,omitempty"` // why tools were left out
	Resources []Resource        `json:"resources,omitempty"`
	Templates []Resource        `json:"templates,omitempty"`
	Prompts   []Prompt          `json:"prompts,omitempty"`
	Time      time.Time         `json:"time"`
}

// pinnedTool is an accepted definition. The schema is stored as a string to
// preserve its white space.
type pinnedTool struct {
	ToolInfo
	Text  string `json:"schema,omitempty"`
	Plain bool   `json:"plain,omitempty"` // the model gets the schema unchanged
}

func pinned(t ToolInfo) pinnedTool {
	p := pinnedTool{ToolInfo: t, Text: string(t.Schema), Plain: string(objectSchema(t.Schema)) == string(t.Schema)}
	p.Schema = nil
	return p
}

// tool returns the definition as the server sent it.
func (p pinnedTool) tool() ToolInfo {
	t := p.ToolInfo
	t.Schema = nil
	if p.Text != "" {
		t.Schema = json.RawMessage(p.Text)
	}
	return t
}

// pin returns the hash of what must not change about a definition: the server's
// identity, the tool's name, its description and the bytes of its schema.
func pin(server string, p pinnedTool) string {
	sum := sha256.Sum256(encode([]string{server, p.Name, p.Description, p.Text}))
	return hex.EncodeToString(sum[:])
}

// learn updates the tools from a server's list, and reports whether anything
// changed. A tool seen for the first time is accepted; one whose definition
// differs from its pin is blocked. The order is stable, with new tools last: the
// server's order may differ between starts.
func (r *record) learn(server string, listed []ToolInfo) (changed bool) {
	byName := make(map[string]pinnedTool, len(listed))
	for _, t := range listed {
		if _, twice := byName[t.Name]; !twice {
			byName[t.Name] = pinned(t)
		}
	}
	before := encode([]any{r.Tools, r.Changed})
	tools := make([]pinnedTool, 0, len(byName))
	var blocked []pinnedTool
	take := func(name string, old *pinnedTool) {
		now := byName[name]
		delete(byName, name)
		switch want := r.Pins[name]; {
		case want == "" || want == pin(server, now):
			r.Pins[name] = pin(server, now)
			tools = append(tools, now)
		case old != nil: // the model keeps seeing the approved definition
			tools, blocked = append(tools, *old), append(blocked, now)
		default: // it was removed in between
			tools, blocked = append(tools, now.placeholder()), append(blocked, now)
		}
	}
	for i, old := range r.Tools {
		if _, listed := byName[old.Name]; listed {
			take(old.Name, &r.Tools[i])
		}
	}
	for _, t := range listed {
		if _, left := byName[t.Name]; left {
			take(t.Name, nil)
		}
	}
	r.Tools, r.Changed = tools, blocked
	return string(before) != string(encode([]any{r.Tools, r.Changed}))
}

// placeholder returns a definition for a changed tool whose approved one is no
// longer known.
func (p pinnedTool) placeholder() pinnedTool {
	s := pinnedTool{Text: `{"type":"object"}`}
	s.Name, s.Description = p.Name, "The definition of this tool has changed and is not approved yet."
	return s
}

// accept approves the new definitions of the named blocked tools, or of all if
// none are named.
func (r *record) accept(server string, names ...string) (taken []string) {
	r.Changed = slices.DeleteFunc(r.Changed, func(now pinnedTool) bool {
		if len(names) > 0 && !slices.Contains(names, now.Name) {
			return false
		}
		i := slices.IndexFunc(r.Tools, func(t pinnedTool) bool { return t.Name == now.Name })
		if i < 0 {
			return true
		}
		r.Tools[i], r.Pins[now.Name] = now, pin(server, now)
		taken = append(taken, now.Name)
		return true
	})
	return taken
}

// change returns the approved and the current definition of a blocked tool.
func (r *record) change(name string) (old, now ToolInfo, blocked bool) {
	i := slices.IndexFunc(r.Changed, func(t pinnedTool) bool { return t.Name == name })
	if i < 0 {
		return old, now, false
	}
	if j := slices.IndexFunc(r.Tools, func(t pinnedTool) bool { return t.Name == name }); j >= 0 {
		old = r.Tools[j].tool()
	}
	return old, r.Changed[i].tool(), true
}

// checkTool checks whether a tool can be offered.
func checkTool(t ToolInfo) error {
	if n := utf8.RuneCountInString(t.Name); n > 128 || cleanLine(t.Name) != t.Name {
		return fmt.Errorf("invalid tool name %q: too long, or with invisible characters", clip(cleanLine(t.Name), 60))
	}
	return nil
}

// objectSchema returns a schema whose root has the type object, for which it has a
// place in the conversation. A missing type is added; a schema of another type is
// replaced. What else a model's service does not accept is left to its client.
func objectSchema(raw json.RawMessage) json.RawMessage {
	var root map[string]json.RawMessage
	if json.Unmarshal(raw, &root) != nil || root == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	var kind string
	var kinds []string
	switch _, typed := root["type"]; {
	case typed && json.Unmarshal(root["type"], &kind) == nil && kind == "object":
		if p, ok := root["properties"]; !ok || string(p) != "null" {
			return cleanJSON(raw)
		}
		delete(root, "properties")
	case typed && json.Unmarshal(root["type"], &kinds) == nil && slices.Contains(kinds, "object"):
	case typed:
		return json.RawMessage(`{"type":"object"}`)
	}
	root["type"] = json.RawMessage(`"object"`)
	return cleanJSON(encode(root))
}

// records are the record files of servers. An empty dir disables them.
type records struct{ dir string }

func (r records) path(hash string) string { return filepath.Join(r.dir, hash[:32]) }

// read returns the content of a server's file, "" if there is none.
func (r records) read(hash string) (string, error) {
	if r.dir == "" {
		return "", nil
	}
	path := r.path(hash)
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case info.Size() > maxRecord || !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: expected a regular file of at most %d bytes", path, maxRecord)
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

// load reads the record of a server. If that fails, also for a newer version, it
// returns an empty record and the error.
func (r records) load(hash string) (*record, error) {
	data, err := r.read(hash)
	if data != "" {
		read := &record{}
		if err = read.unmarshal(data); err == nil {
			if read.Pins == nil {
				read.Pins = map[string]string{}
			}
			return read, nil
		}
		err = fmt.Errorf("%s is invalid and will be rewritten: %w", r.path(hash), err)
	}
	return &record{Version: recordVersion, Pins: map[string]string{}}, err
}

// loadSummary is load for the summary alone.
func (r records) loadSummary(hash string) (summary, error) {
	data, err := r.read(hash)
	if data == "" {
		return summary{}, err
	}
	f, _, err := readSummary(data)
	if err != nil {
		return summary{}, fmt.Errorf("%s is invalid and will be rewritten: %w", r.path(hash), err)
	}
	return f, nil
}

// A record file begins with its summary, which is all that a start needs and is
// read without decoding JSON: a header line, a line per tool, and the tools'
// descriptions and schemas. The rest is the record as JSON, without those texts.
const summaryFormat = "agent-mcp/%d known=%d resources=%d tools=%d skipped=%d\n"

// summary is what the definitions for the model are made of.
type summary struct {
	known     bool // the server has been connected to before
	resources bool // it has resources
	skipped   int  // tools that were left out
	tools     []pinnedTool
}

func (r *record) summary() summary {
	return summary{known: !r.Time.IsZero(), resources: r.Info.Resources, skipped: len(r.Skipped), tools: r.Tools}
}

func (r *record) marshal() []byte {
	bit := map[bool]int{true: 1}
	f := r.summary()
	var b bytes.Buffer
	fmt.Fprintf(&b, summaryFormat, recordVersion, bit[f.known], bit[f.resources], len(f.tools), f.skipped)
	for _, t := range f.tools {
		fmt.Fprintf(&b, "%d %d %d %d %s\n", len(t.Description), len(t.Text), bit[t.Plain], len(t.Name), t.Name)
	}
	rest := r.clone()
	for i := range rest.Tools {
		t := &rest.Tools[i]
		b.WriteString(t.Description)
		b.WriteString(t.Text)
		t.Description, t.Text = "", ""
	}
	b.Write(encode(rest))
	return b.Bytes()
}

// readSummary parses the summary of a record file and returns the rest of it.
func readSummary(data string) (f summary, rest string, err error) {
	line, rest, _ := strings.Cut(data, "\n")
	var version, known, resources, n int
	if !strings.Contains(line, " skipped=") {
		line += " skipped=0" // of an earlier version
	}
	if _, err := fmt.Sscanf(line+"\n", summaryFormat, &version, &known, &resources, &n, &f.skipped); err != nil || version != recordVersion {
		return f, "", fmt.Errorf("unknown format %q", clip(cleanLine(line), 40))
	}
	if n < 0 || n > maxItems {
		return f, "", errors.New("damaged")
	}
	f.known, f.resources = known == 1, resources == 1
	sizes := make([][2]int, 0, min(n, 1000))
	f.tools = make([]pinnedTool, 0, min(n, 1000))
	for range n {
		line, rest, _ = strings.Cut(rest, "\n")
		fields := strings.SplitN(line, " ", 5)
		if len(fields) != 5 {
			return f, "", errors.New("truncated")
		}
		words, errWords := strconv.Atoi(fields[0])
		schema, errSchema := strconv.Atoi(fields[1])
		if errWords != nil || errSchema != nil || words < 0 || schema < 0 || fields[3] != strconv.Itoa(len(fields[4])) {
			return f, "", errors.New("damaged")
		}
		sizes = append(sizes, [2]int{words, schema})
		f.tools = append(f.tools, pinnedTool{ToolInfo: ToolInfo{Name: fields[4]}, Plain: fields[2] == "1"})
	}
	for i, size := range sizes {
		words, schema := size[0], size[1]
		if words > len(rest) || schema > len(rest)-words {
			return f, "", errors.New("truncated")
		}
		f.tools[i].Description, f.tools[i].Text, rest = rest[:words], rest[words:words+schema], rest[words+schema:]
	}
	return f, rest, nil
}

func (r *record) unmarshal(data string) error {
	f, rest, err := readSummary(data)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(rest), r); err != nil {
		return err
	}
	if r.Version != recordVersion || len(r.Tools) != len(f.tools) {
		return errors.New("damaged")
	}
	for i := range r.Tools {
		r.Tools[i].Description, r.Tools[i].Text = f.tools[i].Description, f.tools[i].Text
	}
	return nil
}

// update changes the record of a server on disk, where another process may have
// changed it since it was read here.
func (r records) update(ctx context.Context, hash string, change func(*record)) (*record, error) {
	if r.dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(r.dir, ".lock"), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	defer lock.Close()
	rec, err := r.load(hash)
	if err != nil {
		rec = &record{Version: recordVersion, Pins: map[string]string{}}
	}
	change(rec)
	return rec, atomicfile.Write(r.path(hash), rec.marshal(), 0o600)
}

func (r records) remove(hash string) error {
	if r.dir == "" {
		return nil
	}
	err := os.Remove(r.path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// clone returns a copy whose lists and pins can be modified.
func (r *record) clone() *record {
	c := *r
	c.Tools, c.Changed = slices.Clone(r.Tools), slices.Clone(r.Changed)
	c.Pins = maps.Clone(r.Pins)
	if c.Pins == nil {
		c.Pins = map[string]string{}
	}
	return &c
}
