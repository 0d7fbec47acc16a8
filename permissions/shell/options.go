package shell

import "strings"

// The notation of program.options: names separated by spaces, one letter for
// -x, more for --xxx, followed by
//
//	(nothing)  takes no value
//	?          takes a value only if it is attached
//	=          takes a value that is not a path
//	=<         takes a file that is read
//	=.         takes a path whose metadata is read
//	=>         takes a file that is written
//
// # is a number, as in head -5. All other options, and abbreviations, are not
// known to be harmless.
const (
	takesUnknown  = "" // not known to be harmless
	takesNothing  = "-"
	takesAttached = "?"
	takesText     = "="
	takesFile     = "=<"
	takesPath     = "=."
	takesOutput   = "=>"
)

// takes returns what an option takes, in this notation.
func (p *program) takes(name string) string {
	if name == "" || strings.ContainsAny(name, " =?<>#") {
		return takesUnknown
	}
	for from := 0; ; {
		i := strings.Index(p.options[from:], name)
		if i < 0 {
			return takesUnknown
		}
		begin, end := from+i, from+i+len(name)
		from = end
		if begin > 0 && p.options[begin-1] != ' ' {
			continue
		}
		suffix, _, _ := strings.Cut(p.options[end:], " ")
		switch suffix {
		case "":
			return takesNothing
		case takesAttached, takesText, takesFile, takesPath, takesOutput:
			return suffix
		}
	}
}

// parse sorts the arguments into options and operands, and judges the options.
func (in *invocation) parse(p *program) {
	in.operands = make([]word, 0, len(in.args))
	for i := 0; i < len(in.args); i++ {
		arg := &in.args[i]
		switch {
		case !arg.exact() && arg.maybeOption() && !in.vagueOption(p, arg):
			in.operands = append(in.operands, *arg)
		case len(arg.text) < 2 || arg.text[0] != '-' || arg.kind == below:
			if p.first {
				in.operands = append(in.operands, in.args[i:]...)
				return
			}
			in.operands = append(in.operands, *arg)
		case !arg.exact():
			// judged by vagueOption
		case arg.text == "--":
			in.operands = append(in.operands, in.args[i+1:]...)
			return
		case arg.text[1] == '-' || p.single:
			i += in.long(p, arg, in.args[i+1:])
		default:
			i += in.short(p, arg, in.args[i+1:])
		}
	}
}

// vagueOption judges a word that is not fully known and could be an option. It is
// true for an option whose name is known, such as --max-count=$n.
func (in *invocation) vagueOption(p *program, arg *word) bool {
	harmless := p.harmless && (arg.kind != unknown || p.operands != nothing) // an unknown path is reported separately
	if arg.many {
		if !harmless {
			in.unknown(arg.src + " may be an option" + hint(arg))
		}
		return false
	}
	name, _, hasValue := strings.Cut(strings.TrimLeft(arg.text, "-"), "=")
	isLong := strings.HasPrefix(arg.text, "--") || p.single && strings.HasPrefix(arg.text, "-")
	switch {
	case arg.kind == unknown && isLong && hasValue && (p.takes(name) == takesText || p.takes(name) == takesAttached):
		in.options = append(in.options, option{name: name, value: arg})
		return true
	case arg.kind != literal && !isLong && len(arg.text) >= 2 && arg.text[0] == '-' && p.takes(arg.text[1:2]) == takesText:
		in.options = append(in.options, option{name: arg.text[1:2], value: arg})
		return true
	}
	if !harmless {
		in.unknown(arg.src + " may be an option" + hint(arg))
	}
	return false
}

// hint says how to keep a pattern from being an option.
func hint(arg *word) string {
	if arg.kind == glob && arg.many {
		return "; ./" + arg.src + " cannot"
	}
	return ""
}

// long judges an option of the form --name, --name=value or --name value, and
// returns the number of following words that belong to it.
func (in *invocation) long(p *program, arg *word, next []word) int {
	name, attached, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg.text, "-"), "-"), "=")
	takes := p.takes(name)
	if len(name) < 2 && !p.single {
		takes = takesUnknown
	}
	switch {
	case takes == takesUnknown || takes == takesNothing && hasValue:
		in.refuse(p, name, "--"+name)
		return 0
	case hasValue:
		in.valued(takes, name, &word{value: value{text: attached}, src: arg.src, pos: arg.pos})
		return 0
	case takes == takesNothing || takes == takesAttached:
		in.options = append(in.options, option{name: name})
		return 0
	case len(next) == 0:
		return 0 // the program reports an error
	}
	in.valued(takes, name, &next[0])
	return 1
}

// short does the same for letters after a single dash.
func (in *invocation) short(p *program, arg *word, next []word) int {
	if strings.Trim(arg.text[1:], "0123456789") == "" && strings.Contains(" "+p.options+" ", " # ") {
		return 0
	}
	for i := 1; i < len(arg.text); i++ {
		name := arg.text[i : i+1]
		switch takes := p.takes(name); {
		case takes == takesUnknown:
			in.refuse(p, name, "-"+name)
			return 0
		case takes == takesNothing:
			in.options = append(in.options, option{name: name})
		case i+1 < len(arg.text):
			in.valued(takes, name, &word{value: value{text: arg.text[i+1:]}, src: arg.src, pos: arg.pos})
			return 0
		case takes == takesAttached:
			in.options = append(in.options, option{name: name})
			return 0
		case len(next) == 0:
			return 0
		default:
			in.valued(takes, name, &next[0])
			return 1
		}
	}
	return 0
}

// valued records an option with its value.
func (in *invocation) valued(takes, name string, v *word) {
	in.options = append(in.options, option{name: name, value: v})
	if v.many {
		in.unknown(v.src + " may expand to several words")
	}
	switch takes {
	case takesFile:
		in.touch(Read, v, false)
	case takesPath:
		in.touch(List, v, false)
	case takesOutput:
		in.touch(Write, v, false)
	}
}

// refuse reports that an option is not harmless, with the reason if known.
func (in *invocation) refuse(p *program, name, shown string) {
	why, ok := p.refused[name]
	if !ok {
		why = "is not known to be harmless"
	}
	in.unknown(in.name + " " + shown + " " + why)
}

// has reports whether one of the options was given.
func (in *invocation) has(names ...string) bool {
	return in.option(names...) != nil
}

// option returns the last option with one of the names; nil if there is none.
func (in *invocation) option(names ...string) *option {
	for i := len(in.options) - 1; i >= 0; i-- {
		for _, name := range names {
			if in.options[i].name == name {
				return &in.options[i]
			}
		}
	}
	return nil
}
