package skills

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/rank"
)

// minCached is the number of skills in a place from which on they are cached.
const minCached = 50

// maxCacheFiles is the number of files that a cache may have.
const maxCacheFiles = 16

// diskCache keeps on disk what was read of many skills, and their index. It is
// only a copy: a file that is damaged, of another version of the program, or about
// skills that have changed is not used, and one that cannot be written is missing
// next time. Files are replaced atomically, so that processes may share it.
type diskCache struct{ dir string } // empty = none

// fileState is what changes when a file does.
type fileState struct {
	Size, Changed int64
	Number        uint64
	Status        int64
}

// settled reports whether a file that changes at a time, or later, gets another
// state. Some file systems count in seconds, all in more than nanoseconds.
func (s fileState) settled(at time.Time) bool {
	last := time.Unix(0, max(s.Changed, s.Status))
	if s.Changed%int64(time.Second) == 0 {
		return at.Sub(last) > 2*time.Second
	}
	return at.Sub(last) > 50*time.Millisecond
}

// runningProgram identifies the program: another one may read files differently.
var runningProgram = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(path, stateOf(info))
})

// key returns the name of a cache file for a program and further parts.
func key(kind string, parts ...string) string {
	h := sha256.New()
	for _, p := range append([]string{runningProgram()}, parts...) {
		_, _ = io.WriteString(h, p+"\x00") // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16]) + "." + kind
}

// checksum makes its table on first use.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// read returns the content of a cache file, nil if the file is missing or damaged.
func (d *diskCache) read(name string) []byte {
	if d == nil || d.dir == "" || runningProgram() == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil || len(data) < 4 || checksum(data[4:]) != binary.LittleEndian.Uint32(data) {
		return nil
	}
	return data[4:]
}

// write writes a cache file; data begins with four bytes to spare. Errors only
// cost time.
func (d *diskCache) write(name string, data []byte) {
	if d == nil || d.dir == "" || runningProgram() == "" || os.MkdirAll(d.dir, 0o700) != nil {
		return
	}
	binary.LittleEndian.PutUint32(data, checksum(data[4:]))
	if atomicfile.Write(filepath.Join(d.dir, name), data, 0o600) == nil {
		d.prune()
	}
}

// prune removes the oldest files.
func (d *diskCache) prune() {
	entries, err := os.ReadDir(d.dir)
	if err != nil || len(entries) <= maxCacheFiles {
		return
	}
	age := func(e os.DirEntry) int64 {
		info, err := e.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(age(b), age(a)) })
	for _, e := range entries[maxCacheFiles:] {
		_ = os.Remove(filepath.Join(d.dir, e.Name())) // the next one tries again
	}
}

// bodyFile is a cache file with the texts of a place's skills, which is read when the
// first of them is needed.
type bodyFile struct {
	disk  *diskCache
	name  string
	sum   uint32 // of the file
	once  sync.Once
	bytes string // empty if the file is not the expected one
}

func (t *bodyFile) load() string {
	t.once.Do(func() {
		if data := t.disk.read(t.name); len(data) > 0 && checksum(data) == t.sum {
			t.bytes = unsafe.String(unsafe.SliceData(data), len(data)) // nobody changes it
		}
	})
	return t.bytes
}

// cachedText is where the text of a skill is.
type cachedText struct {
	of       *bodyFile // nil if the skill was not cached
	from, to int
}

func (c cachedText) read() (string, bool) {
	all := c.of.load()
	if c.from < 0 || c.to < c.from || c.to > len(all) {
		return "", false
	}
	return all[c.from:c.to], true
}

// load returns the cached skills of a place that have not changed, by the path of
// their SKILL.md.
func (d *diskCache) load(place string, list []found) map[string]*Skill {
	data := d.read(key("skills", place))
	if data == nil {
		return nil
	}
	// The strings are parts of data, which nobody changes: copying them would take as
	// long as reading them.
	c := &coder{in: unsafe.String(unsafe.SliceData(data), len(data))}
	now := make(map[string]*found, len(list))
	for i := range list {
		now[list[i].at] = &list[i]
	}
	var sum int
	c.count(&sum)
	bodies := &bodyFile{disk: d, name: key("texts", place), sum: uint32(sum)}
	known, all := make(map[string]*Skill, len(list)), make([]Skill, 0, len(list))
	for len(c.in) > 0 && !c.failed {
		var e cacheEntry
		c.entry(&e)
		if f, ok := now[e.path]; ok && f.state == e.state && !c.failed {
			all = append(all, e.skill) // at most one of each in the list, so that nothing moves
			s := &all[len(all)-1]
			s.Scope, s.Base, s.Dir, s.File, s.Files, s.State = f.place.Scope, f.place.Base, f.dir, e.path, os.DirFS(f.dir), StateOn
			s.text.of = bodies
			known[e.path] = s
		}
	}
	if c.failed {
		return nil
	}
	return known
}

// store writes the skills of a place as they are at a time, except those that
// changed just before: a further change could leave no trace.
func (d *diskCache) store(place string, list []cached, at time.Time) {
	bodies := make([]byte, 4, 1<<20)
	c := &coder{writing: true}
	for _, one := range list {
		if one.skill != nil && one.found.state.settled(at) {
			e := cacheEntry{one.found.at, one.found.state, *one.skill}
			e.skill.text.from = len(bodies) - 4
			bodies = append(bodies, one.skill.Body()...)
			e.skill.text.to = len(bodies) - 4
			c.entry(&e)
		}
	}
	head := &coder{out: make([]byte, 4, len(c.out)+16), writing: true}
	sum := int(checksum(bodies[4:]))
	head.count(&sum)
	d.write(key("texts", place), bodies)
	d.write(key("skills", place), append(head.out, c.out...))
}

// index returns the index of skills, from the cache if they are many.
func (d *diskCache) index(list []*Skill) *rank.Index {
	if len(list) < minCached || d == nil {
		return newIndex(list)
	}
	var parts strings.Builder
	for _, s := range list {
		parts.WriteString(s.FullName() + " " + s.Hash + "\n")
	}
	name := key("index", parts.String())
	if data := d.read(name); data != nil {
		if x, err := rank.Load(data, rankFields...); err == nil && x.Len() == len(list) {
			return x
		}
	}
	x := newIndex(list)
	if data, err := x.AppendBinary(make([]byte, 4)); err == nil {
		d.write(name, data)
	}
	return x
}

func newIndex(list []*Skill) *rank.Index {
	x := rank.New(rankFields...)
	for _, s := range list {
		x.Put(strings.ToLower(s.FullName()), indexed(s)...)
	}
	return x
}

// cacheEntry is a skill in a cache file.
type cacheEntry struct {
	path  string
	state fileState
	skill Skill // its manifest, hash and diagnostics, and where its text is
}

// coder writes values, or reads them in the same order.
type coder struct {
	writing bool
	out     []byte
	in      string
	failed  bool
}

func (c *coder) entry(e *cacheEntry) {
	c.text(&e.path)
	number := int64(e.state.Number)
	for _, n := range []*int64{&e.state.Size, &e.state.Changed, &number, &e.state.Status} {
		c.number(n)
	}
	e.state.Number = uint64(number)
	m := &e.skill.Manifest
	for _, s := range []*string{&e.skill.Hash, &m.Name, &m.Description, &m.Brief, &m.WhenToUse, &m.Version, &m.License, &m.Compatibility, &m.ArgumentHint, &m.Agent, &m.Model, (*string)(&m.Effort), &m.Hooks} {
		c.text(s)
	}
	for _, l := range []*[]string{&m.Arguments, &m.Triggers.Keywords, &m.Triggers.Verbs, &m.Triggers.Patterns, &m.Toolsets, &m.Scripts, &m.AllowedTools, &m.Paths} {
		c.texts(l)
	}
	for _, b := range []*bool{&m.Fork, &m.Disabled, &m.NoModel, &m.NoUser} {
		c.truth(b)
	}
	for _, n := range []*int{&m.BodyLine, &e.skill.text.from, &e.skill.text.to} {
		c.count(n)
	}
	c.pairs(&m.Metadata)
	n := len(e.skill.Diagnostics)
	c.count(&n)
	if !c.writing && n > 0 && n <= len(c.in) {
		e.skill.Diagnostics = make([]Diagnostic, n)
	}
	for i := range e.skill.Diagnostics {
		d := &e.skill.Diagnostics[i]
		severity := int(d.Severity)
		c.text(&d.File)
		c.count(&d.Line)
		c.count(&d.Column)
		c.count(&severity)
		c.text(&d.Message)
		d.Severity = Severity(severity)
	}
}

func (c *coder) number(n *int64) {
	if c.writing {
		c.out = binary.AppendVarint(c.out, *n)
		return
	}
	head := []byte(c.in[:min(len(c.in), binary.MaxVarintLen64)])
	v, size := binary.Varint(head)
	if size <= 0 {
		c.failed, c.in = true, ""
		return
	}
	*n, c.in = v, c.in[size:]
}

func (c *coder) count(n *int) {
	v := int64(*n)
	c.number(&v)
	*n = int(v)
}

func (c *coder) text(s *string) {
	n := len(*s)
	c.count(&n)
	switch {
	case c.writing:
		c.out = append(c.out, *s...)
	case n < 0 || n > len(c.in):
		c.failed, c.in = true, ""
	default:
		*s, c.in = c.in[:n], c.in[n:]
	}
}

func (c *coder) truth(b *bool) {
	n := 0
	if *b {
		n = 1
	}
	c.count(&n)
	*b = n == 1
}

func (c *coder) texts(list *[]string) {
	n := len(*list)
	c.count(&n)
	if !c.writing && n > 0 && n <= len(c.in) {
		*list = make([]string, n)
	}
	for i := range *list {
		c.text(&(*list)[i])
	}
}

func (c *coder) pairs(m *map[string]string) {
	var keys, values []string
	for k, v := range *m {
		keys, values = append(keys, k), append(values, v)
	}
	c.texts(&keys)
	c.texts(&values)
	if c.writing {
		return
	}
	*m = make(map[string]string, len(keys))
	for i, k := range keys[:min(len(keys), len(values))] {
		(*m)[k] = values[i]
	}
}
