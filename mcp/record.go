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
	"github.com/seed-009c0928/agent/core/schema"
)

const (
	recordVersion = 1
	maxRecord     = 32 << 20 // bytes
	lockPatience  = 5 * time.Second
	// maxKept bounds the resources and prompts that a record keeps, each.
	maxKept = 1000
)

// record is what is known of a server while it does not run. Its file is named
// by the server's hash. What the model sees comes from here, so that it stays
// the same to the byte whether the server runs or not.
type record struct {
	Version   int               `json:"version"`
	Name      string            `json:"name"`
	Known     Known             `json:"known"`
	Info      Info              `json:"info"`
	Tools     []pinnedTool      `json:"tools"`
	Changed   []pinnedTool      `json:"changed,omitempty"` // what the server says now of tools that are blocked for it
	Pins      map[string]string `json:"pins"`              // of every definition that was ever taken, by the tool's name
	Resources []Resource        `json:"resources,omitempty"`
	Templates []Resource        `json:"templates,omitempty"`
	Prompts   []Prompt          `json:"prompts,omitempty"`
	Time      time.Time         `json:"time"`
}

// pinnedTool is a definition that was taken. The schema is kept as a text: a
// JSON value would lose its spaces.
type pinnedTool struct {
	ToolInfo
	Text  string `json:"schema,omitempty"`
	Plain bool   `json:"plain,omitempty"` // the schema goes to the model as it is
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

// pin is what must not change about a definition: SHA-256 over the server's
// identity, the tool's name, its description and the bytes of its schema.
func pin(server string, p pinnedTool) string {
	sum := sha256.Sum256(encode([]string{server, p.Name, p.Description, p.Text}))
	return hex.EncodeToString(sum[:])
}

// learn takes what a server says of its tools, and reports whether what is
// offered changes. A tool that was never seen is taken as it is; one that was,
// and is another now, is blocked. Order stays, and new tools come last: that of
// the server may differ from start to start.
func (r *record) learn(server string, listed []ToolInfo) (changed bool) {
	said := make(map[string]pinnedTool, len(listed))
	for _, t := range listed {
		if _, twice := said[t.Name]; !twice {
			said[t.Name] = pinned(t)
		}
	}
	before := encode([]any{r.Tools, r.Changed})
	tools := make([]pinnedTool, 0, len(said))
	var blocked []pinnedTool
	take := func(name string, old *pinnedTool) {
		now := said[name]
		delete(said, name)
		switch want := r.Pins[name]; {
		case want == "" || want == pin(server, now):
			r.Pins[name] = pin(server, now)
			tools = append(tools, now)
		case old != nil: // the model goes on seeing what the person knows
			tools, blocked = append(tools, *old), append(blocked, now)
		default: // it was gone for a while
			tools, blocked = append(tools, now.silenced()), append(blocked, now)
		}
	}
	for i, old := range r.Tools {
		if _, still := said[old.Name]; still {
			take(old.Name, &r.Tools[i])
		}
	}
	for _, t := range listed {
		if _, left := said[t.Name]; left {
			take(t.Name, nil)
		}
	}
	r.Tools, r.Changed = tools, blocked
	return string(before) != string(encode([]any{r.Tools, r.Changed}))
}

// silenced is a definition without the server's words, for one whose former
// words are not known any more.
func (p pinnedTool) silenced() pinnedTool {
	s := pinnedTool{Text: `{"type":"object"}`}
	s.Name, s.Description = p.Name, "What it does has changed and is not approved yet."
	return s
}

// accept takes the new definitions of tools that are blocked; none named means
// all.
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

// change returns the old and the new definition of a tool that is blocked.
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

// unusable says why a tool cannot be offered; nil if it can.
func unusable(t ToolInfo) error {
	if n := utf8.RuneCountInString(t.Name); n > 128 || cleanLine(t.Name) != t.Name {
		return fmt.Errorf("the tool %q has a name that cannot be shown as it is", clip(cleanLine(t.Name), 60))
	}
	if _, err := schema.Parse(objectSchema(t.Schema)); err != nil {
		return fmt.Errorf("the schema of the tool %s cannot be used: %w", t.Name, err)
	}
	return nil
}

// objectSchema is a schema that a model can take: its root is an object. One
// that is none is replaced; one that only does not say so is told to.
func objectSchema(raw json.RawMessage) json.RawMessage {
	var root map[string]json.RawMessage
	if json.Unmarshal(raw, &root) != nil || root == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	var kind string
	switch _, said := root["type"]; {
	case said && json.Unmarshal(root["type"], &kind) == nil && kind == "object":
		if p, ok := root["properties"]; !ok || string(p) != "null" {
			return cleanJSON(raw)
		}
		delete(root, "properties")
	case said:
		return json.RawMessage(`{"type":"object"}`)
	}
	root["type"] = json.RawMessage(`"object"`)
	return cleanJSON(encode(root))
}

// records are the files of what is known of servers. An empty directory keeps
// nothing.
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
		return "", fmt.Errorf("%s is no file of at most %d bytes", path, maxRecord)
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

// load reads what is known of a server. What cannot be read, or is of a newer
// version, counts as not known, and the error says so.
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
		err = fmt.Errorf("%s cannot be used and is made anew: %w", r.path(hash), err)
	}
	return &record{Version: recordVersion, Pins: map[string]string{}}, err
}

// loadFace is load of the face alone.
func (r records) loadFace(hash string) (face, error) {
	data, err := r.read(hash)
	if data == "" {
		return face{}, err
	}
	f, _, err := readFace(data)
	if err != nil {
		return face{}, fmt.Errorf("%s cannot be used and is made anew: %w", r.path(hash), err)
	}
	return f, nil
}

// A record's file begins with its face, which is all that a start needs and is
// read without decoding JSON: a line that says how many tools there are, a line
// for each, and their descriptions and schemas. What is left is the JSON of the
// record, without those texts.
const faceFormat = "agent-mcp/%d known=%d resources=%d tools=%d\n"

// face is what the model's tools are made of.
type face struct {
	known     bool // something was learned of the server
	resources bool // it has resources
	tools     []pinnedTool
}

func (r *record) face() face {
	return face{known: !r.Time.IsZero(), resources: r.Info.Resources, tools: r.Tools}
}

func (r *record) marshal() []byte {
	bit := map[bool]int{true: 1}
	f := r.face()
	var b bytes.Buffer
	fmt.Fprintf(&b, faceFormat, recordVersion, bit[f.known], bit[f.resources], len(f.tools))
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

// readFace reads the face of a record's file and returns what stands behind it.
func readFace(data string) (f face, rest string, err error) {
	line, rest, _ := strings.Cut(data, "\n")
	var version, known, resources, n int
	if _, err := fmt.Sscanf(line+"\n", faceFormat, &version, &known, &resources, &n); err != nil || version != recordVersion {
		return f, "", fmt.Errorf("it begins with %q", clip(cleanLine(line), 40))
	}
	if n < 0 || n > maxItems {
		return f, "", errors.New("it is broken")
	}
	f.known, f.resources = known == 1, resources == 1
	sizes := make([][2]int, 0, min(n, 1000))
	f.tools = make([]pinnedTool, 0, min(n, 1000))
	for range n {
		line, rest, _ = strings.Cut(rest, "\n")
		fields := strings.SplitN(line, " ", 5)
		if len(fields) != 5 {
			return f, "", errors.New("it is cut off")
		}
		words, errWords := strconv.Atoi(fields[0])
		schema, errSchema := strconv.Atoi(fields[1])
		if errWords != nil || errSchema != nil || words < 0 || schema < 0 || fields[3] != strconv.Itoa(len(fields[4])) {
			return f, "", errors.New("it is broken")
		}
		sizes = append(sizes, [2]int{words, schema})
		f.tools = append(f.tools, pinnedTool{ToolInfo: ToolInfo{Name: fields[4]}, Plain: fields[2] == "1"})
	}
	for i, size := range sizes {
		words, schema := size[0], size[1]
		if words > len(rest) || schema > len(rest)-words {
			return f, "", errors.New("it is cut off")
		}
		f.tools[i].Description, f.tools[i].Text, rest = rest[:words], rest[words:words+schema], rest[words+schema:]
	}
	return f, rest, nil
}

func (r *record) unmarshal(data string) error {
	f, rest, err := readFace(data)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(rest), r); err != nil {
		return err
	}
	if r.Version != recordVersion || len(r.Tools) != len(f.tools) {
		return errors.New("it is broken")
	}
	for i := range r.Tools {
		r.Tools[i].Description, r.Tools[i].Text = f.tools[i].Description, f.tools[i].Text
	}
	return nil
}

// update changes what is known of a server, as it is on disk now: another
// process may have learned something.
func (r records) update(ctx context.Context, hash string, change func(*record)) (*record, error) {
	if r.dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(r.dir, ".lock"), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
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

// clone returns a copy whose lists and pins can be changed.
func (r *record) clone() *record {
	c := *r
	c.Tools, c.Changed = slices.Clone(r.Tools), slices.Clone(r.Changed)
	c.Pins = maps.Clone(r.Pins)
	if c.Pins == nil {
		c.Pins = map[string]string{}
	}
	return &c
}
