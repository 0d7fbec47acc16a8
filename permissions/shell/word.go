package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// certainty is how much is known about a value before the script runs.
type certainty uint8

const (
	literal certainty = iota // exactly text
	number                   // a decimal number; text is a pattern for it
	glob                     // what the pattern in text matches, or the pattern itself
	below                    // any path that starts with the directory in text
	unknown                  // text is only the prefix
)

// value is what is known about a word or variable.
type value struct {
	text string
	kind certainty
	name string // the pattern to which find limits files below a directory, if any
}

// word is one argument of a command, as far as it is known.
type word struct {
	value
	many bool   // may expand to any number of words
	src  string // the source text
	pos  int    // of src in the script
}

// pipes is the directory of the paths that process substitutions expand to.
const pipes = "/dev/fd/"

// isPipe reports whether a value is a process substitution, not a file.
func (v *value) isPipe() bool { return v.kind == glob && v.text == pipes+"*" }

// shown is the word for an argument list: its text if known, else its source.
func (v *word) shown() string {
	if v.kind == literal && !v.many {
		return v.text
	}
	return v.src
}

// exact reports whether the program receives exactly the text.
func (v *word) exact() bool { return v.kind == literal && !v.many }

// maybeOption reports whether a word that is not exact could be an option, like a
// file named -f that * matches.
func (v *word) maybeOption() bool {
	if v.kind == below {
		return false // roots that begin with - are not tracked
	}
	if v.many && v.kind != glob {
		return true
	}
	return v.text == "" || strings.ContainsRune("-*?[", rune(v.text[0]))
}

// assembly assembles a word from its parts.
type assembly struct {
	w       *walker
	st      *state
	text    strings.Builder // without quotes
	pattern strings.Builder // with literal characters escaped
	kind    certainty
	many    bool
	started bool
	parts   int // of the word
}

// words expands a word as far as possible, and walks through everything that the
// expansion runs.
func (w *walker) words(st *state, sw *syntax.Word) []word {
	if len(sw.Parts) == 1 {
		if lit, ok := sw.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\*?[~{") {
			return []word{{value: value{text: lit.Value}, src: lit.Value, pos: w.offset(sw)}}
		}
	}
	alternatives, ok := braces(sw)
	if w.posix() && (len(alternatives) != 1 || alternatives[0] != sw) {
		w.unclear(sw, "is a brace expansion for some shells and plain text for others")
		return nil
	}
	if !ok {
		w.unclear(sw, "has too many brace expansions")
		return nil
	}
	out := make([]word, 0, len(alternatives))
	for _, alternative := range alternatives {
		v, many := w.assemble(st, alternative.Parts, true)
		out = append(out, word{value: v, many: many, src: w.source(sw), pos: w.offset(sw)})
	}
	return out
}

// single evaluates a word that the shell does not split or glob: in assignments,
// redirects, case and [[ ]].
func (w *walker) single(st *state, sw *syntax.Word) word {
	if sw == nil {
		return word{}
	}
	v, _ := w.assemble(st, sw.Parts, false)
	return word{value: v, src: w.source(sw), pos: w.offset(sw)}
}

// document walks through the body of a here-document.
func (w *walker) document(st *state, body *syntax.Word) {
	if body == nil {
		return
	}
	a := &assembly{w: w, st: st}
	for _, part := range body.Parts {
		a.part(part, true, false, false)
	}
}

// assemble evaluates the parts of a word. Split says that the shell splits
// unquoted expansions into words and expands patterns.
func (w *walker) assemble(st *state, parts []syntax.WordPart, split bool) (v value, many bool) {
	parts = merged(parts)
	a := &assembly{w: w, st: st, parts: len(parts)}
	for i, part := range parts {
		a.part(part, false, split, i == 0)
		if lit, ok := part.(*syntax.Lit); ok && i == 0 && len(parts) > 1 && strings.HasPrefix(lit.Value, "~") && !strings.Contains(lit.Value, "/") {
			a.add(value{kind: unknown}) // quotes or expansions after ~ keep it from expanding
		}
	}
	return a.value(), a.many
}

// merged joins adjacent literals: the parser ends one at a bracket, for example.
func merged(parts []syntax.WordPart) []syntax.WordPart {
	var out []syntax.WordPart
	for i, part := range parts {
		lit, isLit := part.(*syntax.Lit)
		if i > 0 && isLit {
			if before, ok := parts[i-1].(*syntax.Lit); ok {
				if out == nil {
					out = append(out, parts[:i]...)
				}
				joined := out[len(out)-1].(*syntax.Lit)
				if joined == before {
					joined = &syntax.Lit{ValuePos: before.ValuePos, Value: before.Value}
					out[len(out)-1] = joined
				}
				joined.Value += lit.Value
				joined.ValueEnd = lit.ValueEnd
				continue
			}
		}
		if out != nil {
			out = append(out, part)
		}
	}
	if out == nil {
		return parts
	}
	return out
}

func (a *assembly) value() value {
	switch a.kind {
	case glob, number:
		return value{text: a.pattern.String(), kind: a.kind}
	default:
		return value{text: a.text.String(), kind: a.kind}
	}
}

// literal adds literal text.
func (a *assembly) literal(text string) {
	if a.kind == unknown {
		return // only the prefix is kept
	}
	if text != "" && a.kind == number {
		a.kind = glob
	}
	a.started = a.started || text != ""
	a.text.WriteString(text)
	escapeTo(&a.pattern, text)
}

// escapeTo writes a pattern that matches exactly the text.
func escapeTo(to *strings.Builder, text string) {
	for i := range len(text) {
		if strings.IndexByte(`*?[]\`, text[i]) >= 0 {
			to.WriteByte('\\')
		}
		to.WriteByte(text[i])
	}
}

func (a *assembly) add(v value) {
	switch v.kind {
	case literal:
		a.literal(v.text)
	case number:
		if a.kind == literal && !a.started {
			a.kind = number
		} else if a.kind != unknown {
			a.kind = glob
		}
		a.started = true
		a.pattern.WriteByte('*')
	case glob:
		if a.kind != unknown {
			a.kind = glob
			a.pattern.WriteString(v.text)
		}
		a.started = true
	case unknown:
		if a.kind == literal {
			a.text.WriteString(v.text)
		}
		if a.kind == glob || a.kind == number {
			a.text.Reset()
		}
		a.kind, a.started = unknown, true
	}
}

func (a *assembly) part(part syntax.WordPart, quoted, split, first bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		if quoted {
			a.literal(unescapeQuoted(p.Value))
			return
		}
		a.unquoted(p, split, first)
	case *syntax.SglQuoted:
		text, ok := p.Value, true
		if p.Dollar {
			text, ok = ansiC(p.Value)
		}
		if !ok {
			a.add(value{kind: unknown})
			return
		}
		a.literal(text)
	case *syntax.DblQuoted:
		if p.Dollar {
			a.w.unclear(p, `is a $"…" string, which the shell translates`)
		}
		for _, inner := range p.Parts {
			a.part(inner, true, false, false)
		}
	case *syntax.ParamExp:
		a.expansion(a.w.parameter(a.st, p), quoted, split, manyParameters(p))
	case *syntax.CmdSubst:
		a.w.substitution(a.st, p)
		a.expansion(value{kind: unknown}, quoted, split, false)
	case *syntax.ArithmExp:
		a.w.arithmetic(a.st, p.X)
		a.add(value{kind: number})
	case *syntax.ProcSubst:
		a.w.subshell(a.st, p.Stmts)
		a.literal(pipes)
		a.add(value{kind: number})
	default:
		a.w.unclear(part, "is an extended glob, which shells parse differently")
		a.add(value{kind: unknown})
	}
}

// expansion adds the value of an expansion, which the shell splits if unquoted.
func (a *assembly) expansion(v value, quoted, split, list bool) {
	if split && !quoted && v.kind != number && (v.kind != literal || v.text == "" || strings.Trim(v.text, plainCharacters) != "") {
		a.many = true
		v = value{kind: unknown}
	}
	a.many = a.many || list
	a.add(v)
}

const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,@%+-="

// manyParameters reports whether an expansion becomes several words even in
// quotes, like "$@" and "${a[@]}".
func manyParameters(p *syntax.ParamExp) bool {
	if p.Param != nil && p.Param.Value == "@" {
		return true
	}
	index, ok := p.Index.(*syntax.Word)
	return ok && index.Lit() == "@" || p.Names == syntax.NamesPrefixWords
}

// unquoted adds an unquoted literal, in which \, ~ and patterns are special.
func (a *assembly) unquoted(lit *syntax.Lit, split, first bool) {
	text := lit.Value
	for _, sign := range [...]string{"<(", ">(", "$(", "`"} {
		if strings.Contains(text, sign) { // as in ${x:-$<(ls)}
			a.w.unclear(lit, "has a "+sign+" that shells may take for a substitution")
		}
	}
	if first && strings.HasPrefix(text, "~") {
		text = a.tilde(text)
	} else if i := strings.IndexByte(text, '~'); i > 0 && strings.IndexByte("=:", text[i-1]) >= 0 {
		a.add(value{kind: unknown}) // an assignment, or what looks like one
		return
	}
	start := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			a.literal(text[start:i])
			if i++; i == len(text) { // the script ends here
				a.literal(`\`)
			} else if text[i] != '\n' {
				a.literal(text[i : i+1])
			}
			start = i + 1
		case '*', '?', '[':
			if !split {
				continue
			}
			end, pattern := i+1, text[i:i+1]
			if c == '[' {
				if end, pattern = a.bracket(text, i); pattern == "" {
					continue
				}
			}
			a.literal(text[start:i])
			a.add(value{kind: glob, text: pattern})
			a.many = true
			i, start = end-1, end
		}
	}
	if start < len(text) {
		a.literal(text[start:])
	}
}

// bracket returns the end of a possible bracket expression, and a pattern that
// matches at least as much; empty if it is not one.
func (a *assembly) bracket(text string, at int) (end int, pattern string) {
	segment, _, _ := strings.Cut(text[at:], "/")
	if last := strings.LastIndexByte(segment, ']'); last > 0 {
		return at + last + 1, "*"
	}
	if a.parts > 1 { // it may end in another part
		a.add(value{kind: unknown})
		a.many = true
	}
	return at, ""
}

// tilde expands a ~ at the start of a word, and returns the rest.
func (a *assembly) tilde(text string) string {
	user, rest := text[1:], ""
	if i := strings.IndexByte(user, '/'); i >= 0 {
		user, rest = user[:i], user[i:]
	}
	switch {
	case user == "" && a.w.o.Home != "":
		a.literal(a.w.o.Home)
	case user == "+" && len(a.st.dirs) == 1:
		a.literal(a.st.dirs[0])
	default:
		a.add(value{kind: unknown})
	}
	return rest
}

// unescapeQuoted removes the backslashes that escape in double quotes.
func unescapeQuoted(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// ansiC decodes the simple escapes of $'…'; false for others.
func ansiC(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", false
		}
		switch text[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '\\', '\'', '"':
			b.WriteByte(text[i])
		default:
			return "", false
		}
	}
	return b.String(), true
}

const maxAlternatives = 64

// braces expands {a,b} and {1..9} in a word; it is false if the result is too
// large or the expansion not simple.
func braces(sw *syntax.Word) ([]*syntax.Word, bool) {
	if !hasBrace(sw) {
		return []*syntax.Word{sw}, true
	}
	split := &syntax.Word{Parts: append([]syntax.WordPart(nil), sw.Parts...)}
	if !syntax.SplitBraces(split) {
		return []*syntax.Word{sw}, true
	}
	lists, ok := alternatives(split.Parts)
	if !ok {
		return nil, false
	}
	out := make([]*syntax.Word, 0, len(lists))
	for _, parts := range lists {
		if !slices.ContainsFunc(parts, func(p syntax.WordPart) bool { lit, ok := p.(*syntax.Lit); return !ok || lit.Value != "" }) {
			continue // an empty word without quotes vanishes
		}
		out = append(out, &syntax.Word{Parts: parts})
	}
	return out, true
}

func hasBrace(sw *syntax.Word) bool {
	for _, part := range sw.Parts {
		if lit, ok := part.(*syntax.Lit); ok && strings.IndexByte(lit.Value, '{') >= 0 {
			return true
		}
	}
	return false
}

// alternatives expands the brace expressions among the parts.
func alternatives(parts []syntax.WordPart) ([][]syntax.WordPart, bool) {
	out := [][]syntax.WordPart{nil}
	for _, part := range parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i], part)
			}
			continue
		}
		choices, ok := choices(brace)
		if !ok {
			return nil, false
		}
		if len(out)*len(choices) > maxAlternatives {
			return nil, false
		}
		next := make([][]syntax.WordPart, 0, len(out)*len(choices))
		for _, head := range out {
			for _, choice := range choices {
				next = append(next, append(head[:len(head):len(head)], choice...))
			}
		}
		out = next
	}
	return out, true
}

// choices are the alternatives of one brace expression.
func choices(brace *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	var out [][]syntax.WordPart
	if !brace.Sequence {
		for _, elem := range brace.Elems {
			inner, ok := alternatives(elem.Parts)
			if !ok {
				return nil, false
			}
			out = append(out, inner...)
		}
		return out, true
	}
	if len(brace.Elems) != 2 {
		return nil, false
	}
	from, ok := plainNumber(brace.Elems[0].Lit())
	to, ok2 := plainNumber(brace.Elems[1].Lit())
	if !ok || !ok2 || to < from || to-from >= maxAlternatives {
		return nil, false
	}
	for ; from <= to; from++ {
		out = append(out, []syntax.WordPart{&syntax.Lit{ValuePos: brace.Pos(), ValueEnd: brace.Pos(), Value: strconv.Itoa(from)}})
	}
	return out, true
}

// plainNumber reads a number without a sign or leading zeros.
func plainNumber(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && strconv.Itoa(n) == text && n >= 0
}
