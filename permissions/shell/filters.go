package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var awkOptions = program{first: true, options: "F= v=", refused: map[string]string{
	"f": "runs a program from a file", "i": "includes a file", "l": "loads a library", "W": "is not known to be harmless",
}}

// awk judges awk by its program, which must not open files or run commands.
func awk(in *invocation) {
	in.parse(&awkOptions)
	for _, o := range in.options {
		if !o.value.exact() && o.value.maybeOption() && o.name == "F" {
			in.unknown("awk has a separator only known at run time")
		}
	}
	if len(in.operands) == 0 {
		return
	}
	if program := &in.operands[0]; !program.exact() {
		in.unknown("awk runs a program only known at run time")
	} else if why := judgeAwk(program.text); why != "" {
		in.unknown("awk " + why)
	}
	for i := range in.operands[1:] {
		o := &in.operands[1+i]
		if name, _, found := strings.Cut(o.text, "="); found && o.exact() && syntax.ValidName(name) {
			continue
		}
		in.touch(Read, o, false)
	}
}

// judgeAwk says what is not harmless in an awk program; empty if nothing. It does
// not distinguish strings from code, which errs on the safe side.
func judgeAwk(text string) string {
	for _, word := range [...]string{"system", "getline", "ARGV", "ARGC", "@", "PROCINFO", "/inet"} {
		if strings.Contains(text, word) {
			return "uses " + word + ", which may run or read something else"
		}
	}
	if strings.Contains(strings.ReplaceAll(text, "||", ""), "|") {
		return "may pipe to a command"
	}
	if printed := strings.Index(text, "print"); printed >= 0 && strings.Contains(text[printed:], ">") {
		return "may write a file"
	}
	return ""
}

// jqNamed are the options of jq that take a name and a value.
var jqNamed = map[string]bool{"--arg": false, "--argjson": false, "--slurpfile": true, "--rawfile": true}

var jqOptions = program{
	options: "r c s n e S C M a j R h V raw-output raw-output0 compact-output slurp null-input exit-status sort-keys color-output monochrome-output ascii-output join-output raw-input tab indent= args jsonargs seq stream stream-errors unbuffered" + help,
	refused: map[string]string{"f": "runs a program from a file", "from-file": "runs a program from a file", "L": "loads modules", "library-path": "loads modules"},
}

// jq judges jq by its program.
func jq(in *invocation) {
	in.args = in.jqArguments()
	in.parse(&jqOptions)
	if len(in.operands) == 0 {
		return
	}
	if program := &in.operands[0]; !program.exact() {
		in.unknown("jq runs a program only known at run time")
	} else if strings.Contains(program.text, "import") || strings.Contains(program.text, "include") {
		in.unknown("jq may load modules")
	}
	if in.has("args", "jsonargs") {
		in.unknown("jq has arguments that may be files")
	}
	for i := range in.operands[1:] {
		in.touch(Read, &in.operands[1+i], false)
	}
}

// jqArguments removes the options with two values from the arguments.
func (in *invocation) jqArguments() []word {
	rest := make([]word, 0, len(in.args))
	for i := 0; i < len(in.args); i++ {
		isFile, named := jqNamed[in.args[i].text]
		if !named || !in.args[i].exact() || i+2 >= len(in.args) {
			rest = append(rest, in.args[i])
			continue
		}
		if in.args[i+1].many || in.args[i+2].many {
			in.unknown(in.args[i].src + " is followed by words that may expand to several")
		}
		if isFile {
			in.touch(Read, &in.args[i+2], false)
		}
		i += 2
	}
	return rest
}

// golang judges the subcommands of go that build nothing.
func golang(in *invocation) {
	in.setEnv("GOTOOLCHAIN=local", "GOPROXY=off", "GONOPROXY=none", "GOVCS=*:off")
	if len(in.args) == 0 || !in.args[0].exact() {
		in.unknown("go runs programs")
		return
	}
	command := in.args[0].text
	options, known := goCommands[command]
	if !known {
		in.unknown("go " + command + " may run programs or change files")
		return
	}
	in.args = in.args[1:]
	in.parse(&program{single: true, options: options, refused: map[string]string{
		"w": "changes go's settings", "u": "changes go's settings", "export": runsProgram, "compiled": runsProgram, "toolexec": runsProgram, "http": "starts a server",
		"overlay": "reads files that are not checked", "modfile": "reads files that are not checked", "C": "runs in another directory", "versions": "uses the network", "cgo": runsProgram,
	}})
	if mod := in.option("mod"); mod != nil && mod.value.text != "readonly" && mod.value.text != "vendor" {
		in.unknown("go list -mod=" + mod.value.text + " may change go.mod")
	}
	if format := in.option("f"); format != nil && !(format.value.exact() && !strings.Contains(format.value.text, "Stale")) {
		in.unknown("go list runs git to find stale packages")
	}
	if json := in.option("json"); command == "list" && json != nil && (json.value == nil || strings.Contains(json.value.text, "Stale") || !json.value.exact()) && !in.has("m") {
		in.gitRuns()
	}
	if command == "list" || command == "doc" {
		in.here(Access{Kind: List, Recursive: true})
	}
	for i := range in.operands {
		o := &in.operands[i]
		if !o.exact() {
			in.unknown(o.src + " is only known at run time")
		} else if strings.HasPrefix(o.text, "/") || strings.HasPrefix(o.text, ".") || command == "version" {
			path := *o
			path.text = strings.TrimSuffix(strings.TrimSuffix(path.text, "..."), "/")
			if path.text == "" {
				path.text = "/"
			}
			in.touch(List, &path, true)
		}
	}
}

var goCommands = map[string]string{
	"version": "m v",
	"env":     "json changed",
	"list":    "m f= json? deps test e find mod= tags= retracted",
	"doc":     "all c cmd short src u",
	"help":    "",
}
