package shell

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// The limits of a script. The parser has no limit on nesting, so deeply nested
// scripts must not reach it.
const (
	maxScript  = 10_000 // bytes
	maxNesting = 60     // open brackets, and levels of the tree
)

// screen checks a script before it is parsed: for invisible characters, for what
// shells and this parser could read differently, and for its size.
func screen(script string) (Finding, bool) {
	if len(script) > maxScript {
		return Finding{Text: excerpt(script[:100]), Why: fmt.Sprintf("is longer than %d bytes; put long scripts in a file", maxScript)}, true
	}
	open := 0
	for i := 0; i < len(script); {
		r, size := utf8.DecodeRuneInString(script[i:])
		switch r {
		case '(', '{', '[':
			open++
		case ')', '}', ']':
			open = max(0, open-1)
		}
		why := unreadable(r, size)
		if why == "" && open > maxNesting {
			why = "nests too deeply"
		}
		if why != "" {
			end := min(len(script), i+size+20)
			return Finding{Text: excerpt(fmt.Sprintf("%q", script[max(0, i-20):end])), Offset: i, Why: why}, true
		}
		i += size
	}
	return continuedComment(script)
}

// continuedComment looks for a \ at the end of a line that may be a comment. No
// shell continues a comment there, but the parser does, and would miss the next
// line.
func continuedComment(script string) (Finding, bool) {
	from := 0
	for {
		i := strings.Index(script[from:], "\\\n")
		if i < 0 {
			return Finding{}, false
		}
		end := from + i
		begin := strings.LastIndexByte(script[:end], '\n') + 1
		if hash := strings.IndexByte(script[begin:end], '#'); hash >= 0 {
			return Finding{Text: excerpt(script[begin+hash : end+1]), Offset: begin + hash, Why: "may be a comment that ends with a backslash, which hides the next line"}, true
		}
		from = end + 2
	}
}

// unreadable says why a character is not allowed in a script; empty if it is.
func unreadable(r rune, size int) string {
	switch {
	case r == '\n', r == '\t', r >= ' ' && r < 0x7f:
		return ""
	case r == utf8.RuneError && size == 1:
		return "is not valid UTF-8"
	case r == '\r':
		return "contains a carriage return, which hides the text before it"
	case r < ' ', r == 0x7f, r >= 0x80 && r < 0xa0:
		return fmt.Sprintf("contains the control character U+%04X", r)
	case r == 0xfe0e, r == 0xfe0f: // text and emoji style
		return ""
	case !unicode.IsPrint(r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r),
		unicode.Is(unicode.Variation_Selector, r), r == 0x2800: // braille blank
		return fmt.Sprintf("contains the invisible or misleading character U+%04X", r)
	}
	return ""
}

// parse parses a script. For sh, what bash would parse differently is an error,
// as sh may be bash.
func parse(script, dialect string) (*syntax.File, Finding, bool) {
	switch dialect {
	case "", "bash":
		return parseAs(script, syntax.LangBash)
	case "sh":
		file, f, ok := parseAs(script, syntax.LangBash)
		if !ok {
			return nil, f, false
		}
		if n := notPortable(file); n != nil {
			return nil, Finding{Text: excerpt(script[n.Pos().Offset():]), Offset: int(n.Pos().Offset()), Why: "is parsed differently by bash and other shells"}, false
		}
		return parseAs(script, syntax.LangPOSIX)
	}
	return nil, Finding{Text: dialect, Why: "is an unsupported shell; use bash or sh"}, false
}

func parseAs(script string, variant syntax.LangVariant) (*syntax.File, Finding, bool) {
	file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(script), "")
	if err == nil {
		return file, Finding{}, true
	}
	f := Finding{Text: excerpt(script), Why: "does not parse as " + variant.String() + ": " + err.Error()}
	if pe, ok := errors.AsType[syntax.ParseError](err); ok {
		f.Why = "does not parse as " + variant.String() + ": " + pe.Text
		if at := int(pe.Pos.Offset()); at < len(script) {
			f.Offset, f.Text = at, excerpt(script[at:])
		}
	}
	return nil, f, false
}

// notPortable returns the first construct of a script that is specific to bash;
// nil if there is none.
func notPortable(file *syntax.File) (found syntax.Node) {
	syntax.Walk(file, func(n syntax.Node) bool {
		odd := false
		switch n := n.(type) {
		case *syntax.ArithmCmd, *syntax.TestClause, *syntax.LetClause, *syntax.CoprocClause, *syntax.ProcSubst, *syntax.ExtGlob, *syntax.CStyleLoop, *syntax.ArrayExpr:
			odd = true
		case *syntax.DeclClause:
			odd = n.Variant.Value != "export" && n.Variant.Value != "readonly" && n.Variant.Value != "local"
		case *syntax.ForClause:
			odd = n.Select || n.Braces
		case *syntax.FuncDecl:
			odd = n.RsrvWord
		case *syntax.SglQuoted:
			odd = n.Dollar
		case *syntax.DblQuoted:
			odd = n.Dollar
		case *syntax.ArithmExp:
			odd = n.Bracket
		case *syntax.BinaryCmd:
			odd = n.Op == syntax.PipeAll
		case *syntax.CaseItem:
			odd = n.Op != syntax.Break
		case *syntax.Assign:
			odd = n.Append || n.Index != nil
		case *syntax.Redirect:
			odd = n.Op == syntax.RdrAll || n.Op == syntax.AppAll || n.Op == syntax.WordHdoc || n.N != nil && strings.Trim(n.N.Value, "0123456789") != ""
		case *syntax.ParamExp:
			odd = n.Excl || n.Names != 0 || n.Index != nil || n.Slice != nil || n.Repl != nil || n.Exp != nil && n.Exp.Op >= syntax.UpperFirst
		}
		if odd && found == nil {
			found = n
		}
		return found == nil
	})
	return found
}
