package skills

import (
	"cmp"
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/lazy"
)

// knownKeys are the recognized keys, those of the Agent Skills standard first.
// The last line belongs to other programs and is ignored.
var knownKeys = []string{
	"name", "description", "license", "compatibility", "metadata", "allowed-tools",
	"version", "brief_description", "triggers", "when_to_use", "toolsets", "scripts", "default_enabled",
	"disable-model-invocation", "user-invocable", "argument-hint", "paths",
	"model", "effort", "context", "agent", "hooks", "author", "tags", "category", "arguments", "tools", "globs", "mode", "id", "title", "homepage", "compatible_with",
}

// spellings maps alternative spellings to known keys.
var spellings = map[string]string{
	"allowed_tools": "allowed-tools", "allowedTools": "allowed-tools", "when-to-use": "when_to_use", "whenToUse": "when_to_use",
	"brief-description": "brief_description", "default-enabled": "default_enabled", "argument_hint": "argument-hint",
	"disable_model_invocation": "disable-model-invocation", "user_invocable": "user-invocable", "user-invokable": "user-invocable",
}

// maxNodes bounds the values read from one front matter, counting aliased ones
// at each use: a small file can refer to billions.
const maxNodes = 10_000

// reader reads the values of a front matter.
type reader struct {
	*report
	left int // of maxNodes
}

// value is a key with its value.
type value struct {
	key  string
	node *yaml.Node
}

// manifest reads the mapping, which may be nil. It returns nil if nothing describes
// the skill.
func (r *report) manifest(root *yaml.Node, body string) *Manifest {
	d := &reader{r, maxNodes}
	m := &Manifest{Metadata: map[string]string{}}
	seen := map[string]*yaml.Node{}
	for _, v := range d.pairs(root) {
		key := d.known(v)
		if before := seen[key]; before != nil {
			d.at(Warning, v.node, "duplicate key %s, also on line %d: the last one is used", key, before.Line+1)
		}
		seen[key] = v.node
		d.field(m, key, v.node)
		if !slices.Contains(knownKeys, key) {
			d.unknown(key, v.node)
		}
	}
	if m.Agent != "" && !m.Fork {
		d.at(Note, seen["agent"], "agent is ignored without context: fork")
	}
	if Worst(d.report.list) == Error {
		return nil
	}
	if d.left <= 0 {
		d.add(Warning, 2, 1, "the front matter has more than %d values, including aliases: the rest is ignored", maxNodes)
	}
	if m.Description == "" {
		if m.Description = cut(firstParagraph(body), maxDescription); m.Description == "" {
			d.add(Error, 1, 1, "missing description: say in one or two sentences what the skill does and when to use it")
			return nil
		}
		d.add(Warning, 1, 1, "missing description: the first paragraph is used; say in the front matter what the skill does and when to use it")
	}
	if m.Brief == "" {
		m.Brief = brief(m.Description)
	}
	return m
}

// firstParagraph returns the first paragraph of a Markdown text that is not a
// heading; of a text with headings only, the first heading.
func firstParagraph(text string) string {
	title := ""
	for part := range strings.SplitSeq(text, "\n\n") {
		for part = strings.TrimSpace(part); strings.HasPrefix(part, "#"); {
			heading, rest, _ := strings.Cut(part, "\n")
			title, part = cmp.Or(title, strings.TrimSpace(strings.TrimLeft(heading, "#"))), strings.TrimSpace(rest)
		}
		if part = strings.Join(strings.Fields(part), " "); part != "" {
			return part
		}
	}
	return title
}

func (d *reader) at(s Severity, n *yaml.Node, format string, args ...any) {
	d.add(s, n.Line+1, n.Column, format, args...)
}

// known returns the canonical spelling of a key.
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
	d.at(Note, n, "unknown key %q: put custom keys under metadata", key)
}

// pairs returns the keys and values of a mapping, merged ones (<<) first.
func (d *reader) pairs(n *yaml.Node) []value {
	n = d.follow(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var all []value
	for i := 0; i+1 < len(n.Content) && d.left > 0; i += 2 {
		d.left--
		key, val := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			d.left -= 10 // a merge may name a mapping that merges
			if from := d.follow(val); from != nil && from != n {
				all = append(d.pairs(from), all...)
			}
			continue
		}
		if key.Kind != yaml.ScalarNode {
			d.at(Warning, key, "key is not a string: ignored")
			continue
		}
		all = append(all, value{key.Value, placed(val, key)})
	}
	return all
}

// placed gives a value without a position that of its key.
func placed(n, key *yaml.Node) *yaml.Node {
	if n.Line == 0 {
		n.Line, n.Column = key.Line, key.Column
	}
	return n
}

// follow resolves aliases.
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
		m.Compatibility = d.text(key, n)
	case "argument-hint":
		m.ArgumentHint = d.hint(n)
	case "arguments":
		m.Arguments = d.list(key, n, splitWords)
	case "context":
		m.Fork = d.text(key, n) == "fork"
	case "agent":
		m.Agent = d.text(key, n)
	case "model":
		m.Model = d.model(n)
	case "effort":
		m.Effort = d.effort(n)
	case "hooks":
		m.Hooks = d.hooks(n)
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
		items := d.list(key, n, unsplit)
		d.at(Warning, n, "%s is a list: its entries were joined", key)
		return strings.Join(items, " ")
	case of.Kind != yaml.ScalarNode:
		d.at(Warning, n, "%s is not a string: ignored", key)
		return ""
	case of.Tag == "!!null":
		return ""
	}
	text, removed := visible(strings.TrimSpace(of.Value))
	if removed > 0 {
		d.at(Warning, n, "%s contains %d invisible characters: removed", key, removed)
	}
	return text
}

var notName = lazy.Regexp(`[^A-Za-z0-9-]+`)

func (d *reader) name(n *yaml.Node) string {
	text := d.text("name", n)
	clean := CleanName(text)
	if clean != text {
		d.at(Warning, n, "the name %q is not valid (letters, digits and hyphens, at most %d): it is read as %q", cut(text, 80), MaxName, clean)
	}
	return clean
}

// CleanName turns a text into a valid skill name of letters, digits and hyphens.
// The result is empty if no character remains.
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
	case length > maxDescription:
		d.at(Warning, n, "the description has %d characters: truncated to %d", length, maxDescription)
		text = cut(text, maxDescription)
	case length > 500:
		d.at(Note, n, "the description has %d characters: keep it below 500", length)
	}
	return text
}

// hint reads an argument hint. YAML reads its brackets as a list.
func (d *reader) hint(n *yaml.Node) string {
	of := d.follow(n)
	if of == nil || of.Kind != yaml.SequenceNode {
		return cut(d.text("argument-hint", n), 80)
	}
	items := d.list("argument-hint", n, unsplit)
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
	d.at(Warning, n, "%s: expected true or false, found %q: using %t", key, cut(d.text(key, n), 40), byDefault)
	return byDefault
}

// list reads a list, or a string that it splits.
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
				d.at(Warning, item, "%s: expected strings: other entries are ignored", key)
			}
		}
	case yaml.ScalarNode:
		for _, s := range split(d.text(key, n)) {
			add(s)
		}
	default:
		d.at(Warning, n, "%s: expected a list: ignored", key)
	}
	return out
}

func splitCommas(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '\n' })
}

// globs reads globs and drops invalid ones.
func (d *reader) globs(key string, n *yaml.Node) []string {
	list := slices.DeleteFunc(d.list(key, n, splitGlobs), func(glob string) bool {
		if validGlob(glob) {
			return false
		}
		d.at(Warning, n, "%s: invalid or too complex glob %q: ignored", key, cut(glob, 80))
		return true
	})
	if len(list) > maxGlobs {
		d.at(Warning, n, "%s has %d entries: only the first %d are used", key, len(list), maxGlobs)
		list = list[:maxGlobs]
	}
	return list
}

// splitGlobs splits at commas and newlines outside braces: "*.{js,ts}, *.go".
func splitGlobs(s string) []string { return splitOutside(s, '{', '}', ",\n") }

func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '\n' || r == ' ' || r == '\t' })
}

// splitTools splits at commas and spaces outside parentheses:
// "Bash(git add:*) Read".
func splitTools(s string) []string { return splitOutside(s, '(', ')', ", \n\t") }

// splitOutside splits at separators that are not between brackets.
func splitOutside(s string, opening, closing rune, separators string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case opening:
			depth++
		case closing:
			depth--
		}
		return depth <= 0 && strings.ContainsRune(separators, r)
	})
}

// unsplit keeps a string as the only entry of a list.
func unsplit(s string) []string { return []string{s} }

// toolsets reads names of binaries. Older files name module classes as
// "path:Class", which are not supported.
func (d *reader) toolsets(n *yaml.Node) []string {
	all := d.list("toolsets", n, splitWords)
	return slices.DeleteFunc(all, func(name string) bool {
		switch {
		case strings.Contains(name, ":"):
			d.at(Warning, n, "the toolset %q is a module class: only binaries in toolsets/ are supported", cut(name, 80))
		case name != CleanName(name) && notName().MatchString(strings.NewReplacer("_", "", ".", "").Replace(name)), strings.Contains(name, ".."):
			d.at(Warning, n, "the toolset %q is not a file name: ignored", cut(name, 80))
		default:
			return false
		}
		return true
	})
}

// triggers reads {keywords, verbs, patterns}, or a list of keywords.
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
			d.at(Warning, v.node, "unknown key %q in triggers: use keywords, verbs or patterns", v.key)
		}
	}
	return t
}

// maxPattern bounds a pattern, in bytes.
const maxPattern = 1000

// patterns reads regular expressions. A string is a single one and not split.
func (d *reader) patterns(n *yaml.Node) []string {
	all := d.list("patterns", n, unsplit)
	return slices.DeleteFunc(all, func(p string) bool {
		tree, err := syntax.Parse(caseless(p), syntax.Perl)
		switch {
		case len(p) > maxPattern:
			d.at(Warning, n, "a pattern is longer than %d bytes: ignored", maxPattern)
		case err != nil:
			d.at(Warning, n, "the pattern %q is not a valid Go regular expression: ignored: %v", cut(p, 80), err)
		case mayBeEmpty(tree) && regexp.MustCompile(caseless(p)).MatchString(""):
			d.at(Warning, n, "the pattern %q matches everything: ignored", cut(p, 80))
		default:
			return false
		}
		return true
	})
}

// mayBeEmpty reports whether an expression may match an empty text, as far as that
// can be told without compiling it.
func mayBeEmpty(e *syntax.Regexp) bool {
	switch e.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return mayBeEmpty(e.Sub[0])
	case syntax.OpRepeat:
		return e.Min == 0 || mayBeEmpty(e.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(e.Sub, func(part *syntax.Regexp) bool { return !mayBeEmpty(part) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(e.Sub, mayBeEmpty)
	}
	return true
}

// caseless makes a skill's pattern ignore case.
func caseless(pattern string) string { return "(?i)" + pattern }

// hooks reads hooks in Claude Code's form. What has another form is an error, not
// left out: it may have a guard.
func (d *reader) hooks(n *yaml.Node) string {
	var of map[string][]struct {
		Matcher    string           `json:"matcher"`
		Sequential bool             `json:"sequential"`
		Hooks      []map[string]any `json:"hooks"`
	}
	data, err := json.Marshal(d.plain(n))
	if err == nil {
		err = json.Unmarshal(data, &of)
	}
	switch {
	case err != nil || d.left <= 0:
		d.at(Error, n, "hooks: expected EVENT: [{matcher: …, hooks: [{type: command, command: …}]}], see docs/hooks.md")
		return ""
	case len(of) == 0:
		return ""
	}
	return string(data)
}

// plain returns a value as JSON has it.
func (d *reader) plain(n *yaml.Node) any {
	if d.left--; d.left <= 0 {
		return nil
	}
	switch n = d.follow(n); {
	case n == nil:
		return nil
	case n.Kind == yaml.MappingNode:
		object := map[string]any{}
		for _, v := range d.pairs(n) {
			object[v.key] = d.plain(v.node)
		}
		return object
	case n.Kind == yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, d.plain(item))
		}
		return list
	}
	var scalar any
	if n.Decode(&scalar) != nil {
		return n.Value
	}
	return scalar
}

// metadata reads strings. Triggers and the version may be here, too.
func (d *reader) metadata(m *Manifest, n *yaml.Node) {
	of := d.follow(n)
	if of == nil || of.Kind != yaml.MappingNode {
		if of != nil && of.Tag != "!!null" {
			d.at(Warning, n, "metadata: expected a mapping: ignored")
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
