package skills

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

// knownKeys are the keys that mean something, those of the Agent Skills
// standard first. The last ones belong to other programs and are left alone.
var knownKeys = []string{
	"name", "description", "license", "compatibility", "metadata", "allowed-tools",
	"version", "brief_description", "triggers", "when_to_use", "toolsets", "scripts", "default_enabled",
	"disable-model-invocation", "user-invocable", "argument-hint", "paths",
	"model", "effort", "context", "agent", "hooks", "author", "tags", "category", "arguments", "tools", "globs", "mode", "id", "title", "homepage", "compatible_with",
}

// spellings are other ways to write a known key.
var spellings = map[string]string{
	"allowed_tools": "allowed-tools", "allowedTools": "allowed-tools", "when-to-use": "when_to_use", "whenToUse": "when_to_use",
	"brief-description": "brief_description", "default-enabled": "default_enabled", "argument_hint": "argument-hint",
	"disable_model_invocation": "disable-model-invocation", "user_invocable": "user-invocable", "user-invokable": "user-invocable",
}

// maxNodes bounds the values that are read of one front matter, those behind
// aliases each time that they are named: a small file can name billions.
const maxNodes = 10_000

// reader reads the values of a front matter.
type reader struct {
	*report
	left int // of maxNodes
}

// value is a key with what stands behind it.
type value struct {
	key  string
	node *yaml.Node
}

// manifest reads the mapping. It is nil without a description.
func (r *report) manifest(root *yaml.Node) *Manifest {
	d := &reader{r, maxNodes}
	m := &Manifest{Metadata: map[string]string{}}
	seen := map[string]*yaml.Node{}
	for _, v := range d.pairs(root) {
		key := d.known(v)
		if before := seen[key]; before != nil {
			d.at(Warning, v.node, "%s is there twice, also on line %d: the last one counts", key, before.Line+1)
		}
		seen[key] = v.node
		d.field(m, key, v.node)
		if !slices.Contains(knownKeys, key) {
			d.unknown(key, v.node)
		}
	}
	if d.left <= 0 {
		d.add(Warning, 2, 1, "the front matter names more than %d values, aliases included: the rest is left out", maxNodes)
	}
	if m.Description == "" {
		d.add(Error, 2, 1, "there is no description: say in one or two sentences what the skill does and when to use it")
		return nil
	}
	if m.Brief == "" {
		m.Brief = brief(m.Description)
	}
	return m
}

func (d *reader) at(s Severity, n *yaml.Node, format string, args ...any) {
	d.add(s, n.Line+1, n.Column, format, args...)
}

// known returns the usual spelling of a key.
func (d *reader) known(v value) string {
	if known, ok := spellings[v.key]; ok {
		return known
	}
	if lower := strings.ToLower(v.key); lower != v.key && slices.Contains(knownKeys, lower) {
		d.at(Warning, v.node, "the key %q is read as %q", v.key, lower)
		return lower
	}
	return v.key
}

func (d *reader) unknown(key string, n *yaml.Node) {
	if near := jsonpos.Nearest(key, knownKeys[:17]); near != "" {
		d.at(Warning, n, "unknown key %q: did you mean %q?", key, near)
		return
	}
	d.at(Note, n, "unknown key %q: put what is your own below metadata", key)
}

// pairs returns the keys and values of a mapping, those that are merged in
// (<<) first.
func (d *reader) pairs(n *yaml.Node) []value {
	n = d.follow(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var all []value
	for i := 0; i+1 < len(n.Content) && d.left > 0; i += 2 {
		d.left--
		key, behind := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			d.left -= 10 // a merge may name a mapping that merges
			if from := d.follow(behind); from != nil && from != n {
				all = append(d.pairs(from), all...)
			}
			continue
		}
		if key.Kind != yaml.ScalarNode {
			d.at(Warning, key, "a key is no text: it is left out")
			continue
		}
		all = append(all, value{key.Value, placed(behind, key)})
	}
	return all
}

// placed gives a value without a place of its own that of its key.
func placed(n, key *yaml.Node) *yaml.Node {
	if n.Line == 0 {
		n.Line, n.Column = key.Line, key.Column
	}
	return n
}

// follow returns what an alias stands for.
func (d *reader) follow(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		if d.left--; d.left <= 0 {
			return nil
		}
		n = n.Alias
	}
	return n
}

// field reads one key.
func (d *reader) field(m *Manifest, key string, n *yaml.Node) {
	switch key {
	case "name":
		m.Name = d.name(n)
	case "description":
		m.Description = d.description(n)
	case "brief_description":
		m.Brief = cut(strings.Join(strings.Fields(d.text(key, n)), " "), maxBrief)
	case "when_to_use":
		m.WhenToUse = d.text(key, n)
	case "version":
		m.Version = d.text(key, n)
	case "license":
		m.License = d.text(key, n)
	case "compatibility":
		m.Needs = d.text(key, n)
	case "argument-hint":
		m.ArgumentHint = d.hint(n)
	case "allowed-tools":
		m.AllowedTools = d.list(key, n, splitTools)
	case "toolsets":
		m.Toolsets = d.toolsets(n)
	case "scripts":
		m.Scripts = d.list(key, n, splitWords)
	case "paths":
		m.Paths = d.globs(key, n)
	case "default_enabled":
		m.Disabled = !d.boolean(key, n, true)
	case "disable-model-invocation":
		m.NoModel = d.boolean(key, n, false)
	case "user-invocable":
		m.NoUser = !d.boolean(key, n, true)
	case "triggers":
		m.Triggers = d.triggers(n)
	case "metadata":
		d.metadata(m, n)
	}
}

// text reads a scalar as it is written: 1.10 stays 1.10.
func (d *reader) text(key string, n *yaml.Node) string {
	of := d.follow(n)
	switch {
	case of == nil:
		return ""
	case of.Kind == yaml.SequenceNode:
		items := d.list(key, n, func(s string) []string { return []string{s} })
		d.at(Warning, n, "%s is a list: its entries are joined", key)
		return strings.Join(items, " ")
	case of.Kind != yaml.ScalarNode:
		d.at(Warning, n, "%s is no text: it is left out", key)
		return ""
	case of.Tag == "!!null":
		return ""
	}
	text, removed := visible(strings.TrimSpace(of.Value))
	if removed > 0 {
		d.at(Warning, n, "%s holds %d characters that nobody sees: they are removed", key, removed)
	}
	return text
}

var notName = lazily(`[^A-Za-z0-9-]+`)

func (d *reader) name(n *yaml.Node) string {
	text := d.text("name", n)
	clean := CleanName(text)
	if clean != text {
		d.at(Warning, n, "the name %q may hold letters, digits and hyphens only, at most %d of them: it is read as %q", cut(text, 80), MaxName, clean)
	}
	return clean
}

// CleanName makes a skill's name of a text: letters, digits and hyphens. It is
// empty if nothing of the text can stay.
func CleanName(text string) string {
	clean := strings.Trim(notName().ReplaceAllString(text, "-"), "-")
	if len(clean) > MaxName {
		clean = strings.Trim(clean[:MaxName], "-")
	}
	return clean
}

func (d *reader) description(n *yaml.Node) string {
	text := d.text("description", n)
	switch length := utf8.RuneCountInString(text); {
	case length > MaxDescription:
		d.at(Warning, n, "the description has %d characters: it is cut to %d", length, MaxDescription)
		text = cut(text, MaxDescription)
	case length > 500:
		d.at(Note, n, "the description has %d characters: up to 500 are read with care", length)
	}
	return text
}

// hint reads an argument hint. Its brackets make a list of it in YAML.
func (d *reader) hint(n *yaml.Node) string {
	of := d.follow(n)
	if of == nil || of.Kind != yaml.SequenceNode {
		return cut(d.text("argument-hint", n), 80)
	}
	items := d.list("argument-hint", n, func(s string) []string { return []string{s} })
	return cut("["+strings.Join(items, ", ")+"]", 80)
}

func (d *reader) boolean(key string, n *yaml.Node, byDefault bool) bool {
	switch strings.ToLower(d.text(key, n)) {
	case "true", "yes", "on", "1":
		return true
	case "false", "no", "off", "0":
		return false
	case "":
		return byDefault
	}
	d.at(Warning, n, "%s: expected true or false, found %q: it is %t", key, cut(d.text(key, n), 40), byDefault)
	return byDefault
}

// list reads a list, or a text that split takes apart.
func (d *reader) list(key string, n *yaml.Node, split func(string) []string) []string {
	of := d.follow(n)
	if of == nil {
		return nil
	}
	var out []string
	odd := false
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	switch of.Kind {
	case yaml.SequenceNode:
		for _, item := range of.Content {
			if d.left--; d.left <= 0 {
				break
			}
			if at := d.follow(item); at != nil && at.Kind == yaml.ScalarNode {
				add(d.text(key, item))
			} else if !odd {
				odd = true
				d.at(Warning, item, "%s: expected texts: this entry, and others like it, are left out", key)
			}
		}
	case yaml.ScalarNode:
		for _, s := range split(d.text(key, n)) {
			add(s)
		}
	default:
		d.at(Warning, n, "%s: expected a list: it is left out", key)
	}
	return out
}

func splitCommas(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '\n' })
}

// globs reads globs. One that is none is left out.
func (d *reader) globs(key string, n *yaml.Node) []string {
	list := slices.DeleteFunc(d.list(key, n, splitGlobs), func(glob string) bool {
		if validGlob(glob) {
			return false
		}
		d.at(Warning, n, "%s: %q is no glob, or one too intricate: it is left out", key, cut(glob, 80))
		return true
	})
	if len(list) > maxGlobs {
		d.at(Warning, n, "%s: there are %d: the first %d count", key, len(list), maxGlobs)
		list = list[:maxGlobs]
	}
	return list
}

// splitGlobs splits at commas and ends of lines outside of braces: "*.{js,ts}, *.go".
func splitGlobs(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case ',', '\n':
			return depth <= 0
		}
		return false
	})
}

func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '\n' || r == ' ' || r == '\t' })
}

// splitTools splits at commas and spaces outside of parentheses:
// "Bash(git add:*) Read".
func splitTools(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',', ' ', '\n', '\t':
			return depth <= 0
		}
		return false
	})
}

// toolsets reads names of binaries. Older files name classes of modules, as
// "path:Class", which nothing runs.
func (d *reader) toolsets(n *yaml.Node) []string {
	all := d.list("toolsets", n, splitWords)
	return slices.DeleteFunc(all, func(name string) bool {
		switch {
		case strings.Contains(name, ":"):
			d.at(Warning, n, "the toolset %q is a class of a module: only binaries below toolsets/ are run", cut(name, 80))
		case name != CleanName(name) && notName().MatchString(strings.NewReplacer("_", "", ".", "").Replace(name)), strings.Contains(name, ".."):
			d.at(Warning, n, "the toolset %q is no file name: it is left out", cut(name, 80))
		default:
			return false
		}
		return true
	})
}

// triggers reads {keywords, verbs, patterns}, or keywords alone.
func (d *reader) triggers(n *yaml.Node) Triggers {
	of := d.follow(n)
	if of == nil || of.Kind != yaml.MappingNode {
		return Triggers{Keywords: d.list("triggers", n, splitCommas)}
	}
	var t Triggers
	for _, v := range d.pairs(of) {
		switch v.key {
		case "keywords", "keyword", "phrases":
			t.Keywords = append(t.Keywords, d.list("keywords", v.node, splitCommas)...)
		case "verbs", "verb":
			t.Verbs = append(t.Verbs, d.list("verbs", v.node, splitWords)...)
		case "patterns", "pattern":
			t.Patterns = append(t.Patterns, d.patterns(v.node)...)
		default:
			d.at(Warning, v.node, "unknown key %q in triggers: there are keywords, verbs and patterns", v.key)
		}
	}
	return t
}

// maxPattern bounds a pattern, in bytes.
const maxPattern = 1000

// patterns reads regular expressions. A text is one; none is split.
func (d *reader) patterns(n *yaml.Node) []string {
	all := d.list("patterns", n, func(s string) []string { return []string{s} })
	return slices.DeleteFunc(all, func(p string) bool {
		re, err := compile(p)
		switch {
		case len(p) > maxPattern:
			d.at(Warning, n, "a pattern is longer than %d bytes: it is left out", maxPattern)
		case err != nil:
			d.at(Warning, n, "the pattern %q is no regular expression of Go and is left out: %v", cut(p, 80), err)
		case re.MatchString(""):
			d.at(Warning, n, "the pattern %q matches everything and is left out", cut(p, 80))
		default:
			return false
		}
		return true
	})
}

// compile compiles a pattern of a skill, which does not heed case.
func compile(pattern string) (*regexp.Regexp, error) { return regexp.Compile("(?i)" + pattern) }

// metadata reads texts. Triggers may be there, too.
func (d *reader) metadata(m *Manifest, n *yaml.Node) {
	of := d.follow(n)
	if of == nil || of.Kind != yaml.MappingNode {
		if of != nil && of.Tag != "!!null" {
			d.at(Warning, n, "metadata: expected keys with values: it is left out")
		}
		return
	}
	for _, v := range d.pairs(of) {
		at := d.follow(v.node)
		switch {
		case at == nil:
		case v.key == "triggers" && m.Triggers.None():
			m.Triggers = d.triggers(v.node)
		case v.key == "version" && m.Version == "":
			m.Version = d.text("version", v.node)
		case at.Kind == yaml.ScalarNode:
			m.Metadata[v.key] = d.text(v.key, v.node)
		}
	}
}
