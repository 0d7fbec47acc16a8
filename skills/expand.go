package skills

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/lazy"
)

// Values are what the placeholders of a text stand for.
type Values struct {
	Args    string   // what follows /NAME
	Names   []string // of the arguments, in order
	Dir     string   // of the skill; empty = none
	Session core.SessionInfo
}

// placeholder matches ${VARIABLE}, {baseDir}, $1, and $NAME or $NAME[1].
var placeholder = lazy.Regexp(`\$\{([A-Z_]+)\}|\{(baseDir)\}|\$([0-9]+(?:[.,][0-9]+)*)|\$([A-Za-z_][A-Za-z0-9_]*)(\[[0-9]{1,3}\])?`)

// Fill replaces the placeholders of a text: $ARGUMENTS by all arguments,
// $ARGUMENTS[0], $0 and the names by single ones, which are split as a shell
// does, and the variables for folders and the session. Everything else with a
// dollar sign stays, as does an argument by position that was not given. Used
// reports whether the text has placeholders for arguments.
func (v Values) Fill(text string) (filled string, used bool) {
	words := splitArgs(v.Args)
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	var b strings.Builder
	last := 0
	for _, at := range placeholder().FindAllStringSubmatchIndex(text, -1) {
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return text[at[2*i]:at[2*i+1]]
		}
		value, end, arg := "", at[1], true
		switch number, name := group(3), group(4); {
		case at[0] > 0 && text[at[0]-1] == '\\':
			continue
		case len(number) == 1 && number[0] < byte('0'+len(words)) && !wordAt(text, end):
			value = word(int(number[0] - '0'))
		case name == "ARGUMENTS" && group(5) != "":
			i, _ := strconv.Atoi(strings.Trim(group(5), "[]")) // three digits
			value = word(i)
		case name == "ARGUMENTS":
			value = v.Args
		case name != "" && slices.Contains(v.Names, name):
			value, end = word(slices.Index(v.Names, name)), at[9]
		default:
			if value, arg = v.variable(cmp.Or(group(1), group(2))), false; value == "" {
				continue
			}
		}
		b.WriteString(text[last:at[0]] + value)
		last, used = end, used || arg
	}
	return b.String() + text[last:], used
}

// wordAt reports whether a word continues at an offset, as in $5k.
func wordAt(text string, at int) bool {
	return at < len(text) && (text[at] == '_' || text[at]|0x20 >= 'a' && text[at]|0x20 <= 'z')
}

// variable returns the value of ${NAME} or {baseDir}, empty if unknown.
func (v Values) variable(name string) string {
	switch name {
	case "CLAUDE_SKILL_DIR", "AGENT_SKILL_DIR", "baseDir":
		return v.Dir
	case "CLAUDE_PROJECT_DIR", "AGENT_WORKSPACE":
		return v.Session.Dir
	case "CLAUDE_SESSION_ID", "AGENT_SESSION_ID":
		return v.Session.ID
	}
	return ""
}

// splitArgs splits arguments at spaces outside quotes, and removes the quotes. An
// apostrophe within a word is no quote. In double quotes, a backslash precedes a
// quote or another one.
func splitArgs(text string) (words []string) {
	var word strings.Builder
	quote, started, escaped := rune(0), false, false
	for i, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case quote == '"' && r == '\\' && i+1 < len(text) && strings.IndexByte(`"\`, text[i+1]) >= 0:
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'' && !started):
			quote, started = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words
}

// quoteArgs is the reverse of splitArgs.
func quoteArgs(args []string) string {
	quoted := slices.Clone(args)
	for i, a := range quoted {
		if a == "" || strings.ContainsAny(a, " \t\n'\"") {
			quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a) + `"`
		}
	}
	return strings.Join(quoted, " ")
}

// embedded is a command in a text, whose output is to stand in its place.
type embedded struct {
	from, to int
	command  string
}

// commandMark matches !`command` after a space, and a block fenced by ```!.
var commandMark = lazy.Regexp("(?m)(?:^|[ \\t(:>|*-])(!`([^`\\n]+)`)|^[ \\t]*(```![^\\n]*\\n((?s:.*?))\\n[ \\t]*```)[ \\t]*$")

// Bounds of the commands in a text.
const (
	maxEmbedded       = 20
	maxEmbeddedOutput = 30_000 // bytes of each
)

// Embedded returns the commands that a text wants to be run, in order.
func Embedded(text string) (commands []string) {
	for _, e := range embeddedIn(text) {
		commands = append(commands, e.command)
	}
	return commands
}

func embeddedIn(text string) (all []embedded) {
	for _, at := range commandMark().FindAllStringSubmatchIndex(text, maxEmbedded) {
		span := at[2:6]
		if span[0] < 0 {
			span = at[6:10]
		}
		command := strings.TrimSpace(text[span[2]:span[3]])
		if quoted := strings.HasSuffix(strings.TrimRight(text[:span[0]], " "), "``"); command != "" && !quoted {
			all = append(all, embedded{span[0], span[1], command})
		}
	}
	return all
}

// runEmbedded runs the commands of a text, which the call was granted, and puts
// their output in their place.
func (t *Tools) runEmbedded(ctx context.Context, call *core.Call, text string) string {
	ctx, stop := context.WithTimeoutCause(ctx, t.opts.ScriptTimeout, errScriptTime)
	defer stop()
	var b strings.Builder
	last := 0
	for _, e := range embeddedIn(text) {
		b.WriteString(text[last:e.from] + output(ctx, call.Env, e.command))
		last = e.to
	}
	return b.String() + text[last:]
}

// output runs a command and returns what it printed, or why that is not all.
func output(ctx context.Context, env core.Environment, command string) string {
	var out strings.Builder
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &limitedWriter{&outputLimit{left: maxEmbeddedOutput, exceeded: func() { cancel(errScriptOutput) }}, &out}
	p, err := env.Start(ctx, core.Command{Script: command, Env: []string{"PAGER=cat", "GIT_PAGER=cat", "TERM=dumb"}, Stdout: w, Stderr: w})
	var exit core.Exit
	if err == nil {
		exit, err = p.Wait()
	}
	text, _ := visible(strings.TrimSpace(strings.ToValidUTF8(out.String(), "")))
	switch cause := context.Cause(ctx); {
	case cause != nil:
		text += fmt.Sprintf(" [%s was stopped: %v]", command, cause)
	case err != nil:
		text += fmt.Sprintf(" [%s could not be run: %v]", command, err)
	case exit.Code != 0:
		text += fmt.Sprintf(" [%s: exit code %d]", command, exit.Code)
	}
	return strings.TrimSpace(text)
}
