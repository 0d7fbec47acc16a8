package needs

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Kind is the kind of a need.
type Kind uint8

// The kinds, the narrowest first.
const (
	Host    Kind = iota // connects to Resource, a host with an optional port, through a proxy
	Socket              // connects to the Unix socket Resource
	Dir                 // writes below the directory Resource
	Cache               // writes the cache Resource, of which it may have a copy
	Network             // connects to Resource without a proxy; empty if unknown
	Escape              // cannot work in a sandbox
)

// Need is one need of a command.
type Need struct {
	Kind     Kind
	Resource string
	Why      string // a predicate, such as "downloads modules"
}

// Machine is where a command runs.
type Machine struct {
	Dir, Home string // absolute
	// Venv says that a Python environment was activated before.
	Venv   bool
	Getenv func(name string) string
	// ReadFile and Exists take absolute paths.
	ReadFile func(name string) ([]byte, error)
	Exists   func(name string) bool
	// ReadDir returns the names in a directory.
	ReadDir func(name string) []string
}

// Of returns what a command needs. Words only known at run time are as in the
// script.
func Of(argv []string, m *Machine) []Need {
	if len(argv) == 0 {
		return nil
	}
	c := &command{Machine: m, program: argv[0]}
	for _, word := range argv[1:] {
		c.args = append(c.args, strings.Trim(word, `"'`))
	}
	c.name = path.Base(c.program)
	if trimmed := strings.TrimRight(c.name, "0123456789."); trimmed == "pip" || trimmed == "python" {
		c.name = trimmed
	}
	if find := programs[c.name]; find != nil && !c.asksHelp() {
		find(c)
	}
	return c.needs
}

// programs are the known programs.
var programs = index(
	goPrograms, nodePrograms, pythonPrograms, otherRegistries, javaPrograms, gitPrograms, daemons, clients, installers, signedIn,
)

type table map[string]func(*command)

// index joins tables. A key may be several names.
func index(tables ...table) table {
	all := table{}
	for _, t := range tables {
		for names, find := range t {
			for name := range strings.FieldsSeq(names) {
				all[name] = find
			}
		}
	}
	return all
}

// command is a command being looked at.
type command struct {
	*Machine
	program string // as written
	name    string
	args    []string
	needs   []Need
}

func (c *command) add(kind Kind, resource, why string) {
	n := Need{kind, resource, why}
	if !slices.ContainsFunc(c.needs, func(o Need) bool { return o.Kind == kind && o.Resource == resource }) {
		c.needs = append(c.needs, n)
	}
}

// hosts adds hosts, given as hosts or URLs.
func (c *command) hosts(why string, hosts ...string) {
	for _, h := range hosts {
		if h != "" {
			c.add(Host, h, why)
		}
	}
}

// escape says that the command cannot work in a sandbox, whatever it needs.
func (c *command) escape(why string) {
	c.needs = []Need{{Kind: Escape, Why: why}}
}

// asksHelp reports whether the command only prints its help or version.
func (c *command) asksHelp() bool {
	if len(c.args) == 0 {
		return false
	}
	last := c.args[len(c.args)-1]
	return last == "--help" || len(c.args) == 1 && slices.Contains([]string{"-h", "help", "--version", "-V", "-v", "-version", "version"}, last) && c.name != "curl"
}

// has reports whether one of the words is an argument.
func (c *command) has(words ...string) bool {
	return slices.ContainsFunc(c.args, func(a string) bool { return slices.Contains(words, a) })
}

// value returns the value of an option, in one word or two.
func (c *command) value(options ...string) string {
	values := c.values(options...)
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

func (c *command) values(options ...string) (values []string) {
	for i, a := range c.args {
		name, value, joined := strings.Cut(a, "=")
		switch {
		case !slices.Contains(options, name):
		case joined:
			values = append(values, value)
		case i+1 < len(c.args):
			values = append(values, c.args[i+1])
		}
	}
	return values
}

// operands returns the arguments that are neither options nor the values of the
// given options, which are separated by spaces.
func (c *command) operands(valued string) (words []string) {
	skip := strings.Fields(valued)
	for i := 0; i < len(c.args); i++ {
		a := c.args[i]
		switch {
		case a == "--":
			return append(words, c.args[i+1:]...)
		case slices.Contains(skip, a):
			i++
		case !strings.HasPrefix(a, "-"):
			words = append(words, a)
		}
	}
	return words
}

// sub returns the first operand.
func (c *command) sub(valued string) string {
	if words := c.operands(valued); len(words) > 0 {
		return words[0]
	}
	return ""
}

// shift removes the words up to the given one.
func (c *command) shift(word string) *command {
	c.args = c.args[slices.Index(c.args, word)+1:]
	return c
}

// abs makes a path absolute.
func (c *command) abs(name string) string {
	switch {
	case path.IsAbs(name):
		return path.Clean(name)
	case name == "~" || strings.HasPrefix(name, "~/"):
		return path.Join(c.Home, name[1:])
	}
	return path.Join(c.Dir, name)
}

// read returns the content of a file; empty if there is none.
func (m *Machine) read(name string) string {
	text, err := m.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(text)
}

// above returns the path of a file in the directory or the next one above it that
// has it; empty if none has.
func (m *Machine) above(name string) string {
	for dir := m.Dir; ; dir = path.Dir(dir) {
		if file := path.Join(dir, name); m.Exists(file) {
			return file
		}
		if path.Dir(dir) == dir {
			return ""
		}
	}
}

// one returns whether a word is one of those in a list.
func one(word, list string) bool { return word != "" && slices.Contains(strings.Fields(list), word) }

// unknownHost is the host of a URL that is only known at run time.
const unknownHost = "*"

// hostOf returns the host of a URL, with a port unless it is that of HTTP or
// HTTPS; empty if it has none, and [unknownHost] if that is only known at run time.
func hostOf(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return ""
	}
	authority, _, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(scheme+authority, "$`*") {
		return unknownHost
	}
	u, err := url.Parse(strings.TrimPrefix(scheme, "git+") + "://" + authority)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if IsLoopback(host) && port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
		if port == "" {
			port = "80"
		}
	}
	return withPort(host, port)
}

// withPort adds a port, unless it is that of HTTP or HTTPS on another machine.
func withPort(host, port string) string {
	if port == "" || (port == "80" || port == "443") && !IsLoopback(host) {
		return host
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	host = strings.Trim(host, "[]")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "0.0.0.0" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

var webURL = lazy.Regexp(`https?://[^/\s"'),<>|;]+`)

// urlHosts returns the hosts of the http and https URLs in a text.
func urlHosts(text string) (hosts []string) {
	for _, found := range webURL().FindAllString(text, -1) {
		if h := hostOf(found); h != "" && h != unknownHost && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}
