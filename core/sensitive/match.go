package sensitive

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"
)

// compiled is an entry prepared for matching.
type compiled struct {
	Entry
	elements []string // folded
	except   []string
	word     bool   // names above the workspace or home directory do not count
	head     string // of the first element, before a *
	part     string // the longest text of the first element without a *
}

// index finds the entries whose first element may match a name.
type index struct {
	exact map[string][]*compiled
	// lengths has the bit of each length of the exact names with a first byte: most
	// names need not be looked up.
	lengths [256]uint64
	ext     map[string][]*compiled // of *.ext
	first   [256][]*compiled       // of patterns that begin with a letter
	stars   []*compiled            // of all others
	agent   []*compiled            // below the agent's directory
}

// lengthBit is the bit of a name's length.
func lengthBit(name string) uint64 { return 1 << min(len(name), 63) }

var table = sync.OnceValue(func() *index {
	x := &index{exact: map[string][]*compiled{}, ext: map[string][]*compiled{}}
	for _, e := range entries() {
		c := &compiled{Entry: e, elements: strings.Split(strings.TrimSuffix(strings.ToLower(e.Pattern), "/"), "/"), except: e.Except}
		first := c.elements[0]
		ext, star := strings.CutPrefix(first, "*.")
		c.word = strings.HasPrefix(first, "*") && strings.HasSuffix(first, "*")
		c.head, _, _ = strings.Cut(first, "*")
		c.part = slices.MaxFunc(strings.Split(first, "*"), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		switch {
		case e.Scope == AgentHome:
			x.agent = append(x.agent, c)
		case !strings.Contains(first, "*"):
			x.exact[first] = append(x.exact[first], c)
			x.lengths[first[0]] |= lengthBit(first)
		case star && !strings.ContainsAny(ext, "*."):
			x.ext[ext] = append(x.ext[ext], c)
		case first[0] != '*':
			x.first[first[0]] = append(x.first[first[0]], c)
		default:
			x.stars = append(x.stars, c)
		}
	}
	return x
})

// Match returns the entry that a path with forward slashes matches, ignoring
// case; one for secrets rather than another. An absolute path may match System
// entries. In the first skip bytes of the path, those of the workspace or home
// directory, words such as "secret" do not count.
func Match(path string, skip int) (Entry, bool) {
	path = strings.ToLower(path)
	var found *compiled
	x := table()
	stars := x.starsIn(path)
	for start := 0; start < len(path); {
		end := start + len(path[start:])
		if i := strings.IndexByte(path[start:], '/'); i >= 0 {
			end = start + i
		}
		if name := plainName(path[start:end]); name != "" {
			at := place{path: path, name: name, rest: path[min(end+1, len(path)):], top: start == 1, known: start < skip}
			if c := x.at(&at, stars, found); c != nil {
				if found = c; c.Class == Secret {
					break
				}
			}
		}
		start = end + 1
	}
	if found == nil {
		return Entry{}, false
	}
	return found.Entry, true
}

// MatchAgentHome returns the entry that a path below the agent's own directory,
// relative to it, matches.
func MatchAgentHome(rel string) (Entry, bool) {
	name, rest, _ := strings.Cut(strings.ToLower(rel), "/")
	at := place{path: name, name: plainName(name), rest: rest}
	if c := pick(table().agent, &at, nil); c != nil {
		return c.Entry, true
	}
	return Entry{}, false
}

// place is an element of a path.
type place struct {
	path, name, rest string
	top              bool // it is the first of an absolute path
	known            bool // it belongs to the workspace or home directory
}

// starsIn returns the stars that may match somewhere in a path: usually none.
func (x *index) starsIn(path string) (stars []*compiled) {
	for _, c := range x.stars {
		if strings.Contains(path, c.part) {
			stars = append(stars, c)
		}
	}
	return stars
}

// at returns the gravest entry that begins at an element; found if none is graver.
func (x *index) at(p *place, stars []*compiled, found *compiled) *compiled {
	if x.lengths[p.name[0]]&lengthBit(p.name) != 0 {
		found = pick(x.exact[p.name], p, found)
	}
	if dot := strings.LastIndexByte(p.name, '.'); dot >= 0 {
		found = pick(x.ext[p.name[dot+1:]], p, found)
	}
	found = pick(x.first[p.name[0]], p, found)
	return pick(stars, p, found)
}

func pick(from []*compiled, p *place, found *compiled) *compiled {
	for _, c := range from {
		if (found == nil || found.Class != Secret && c.Class == Secret) && c.matches(p) {
			found = c
		}
	}
	return found
}

func (c *compiled) matches(p *place) bool {
	if !strings.HasPrefix(p.name, c.head) || c.Scope == System && !p.top || c.word && p.known || !wild(c.elements[0], p.name) {
		return false
	}
	rest := p.rest
	for _, pattern := range c.elements[1:] {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if !wild(pattern, plainName(name)) {
			return false
		}
	}
	last := plainName(path.Base(p.path))
	for _, pattern := range c.except {
		if wild(pattern, last) {
			return false
		}
	}
	return true
}

// plainName is a name without what Windows ignores: a stream, and trailing dots
// and spaces. It is empty for . and ..
func plainName(name string) string {
	if i := strings.IndexByte(name, ':'); i > 1 {
		name = name[:i]
	}
	return strings.TrimRight(name, ". ")
}

// wild reports whether a name matches a pattern in which only * is special.
func wild(pattern, name string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, rest, more := strings.Cut(tail, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, tail = name[i+len(part):], rest
	}
}
