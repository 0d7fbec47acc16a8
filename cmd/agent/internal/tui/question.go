package tui

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
)

// dialog is a question on its way to an answer.
type dialog struct {
	*asked
	options []option
	fields  []field // of a form
	at      int     // the field that is being filled in
	values  []string
	reason  bool // the person is writing why not
	broken  error
}

// option is an answer that can be picked with a key.
type option struct {
	key    rune
	choice core.Choice
	label  string
	reason bool // the person says why
}

func newDialog(q *asked) *dialog {
	d := &dialog{asked: q}
	if q.Kind == core.QuestionForm {
		d.fields, d.broken = parseForm(q.Schema)
		if d.broken == nil {
			return d
		}
	}
	d.options = optionsOf(q)
	return d
}

// optionsOf lists what a question offers, and nothing else.
func optionsOf(q *asked) []option {
	choices := q.Choices
	if len(choices) == 0 {
		switch q.Kind {
		case core.QuestionPermission, core.QuestionForm:
			choices = []core.Choice{core.ChoiceDeny}
		default:
			choices = []core.Choice{core.ChoiceYes, core.ChoiceNo}
		}
	}
	var out []option
	for i, c := range choices {
		switch c {
		case core.ChoiceOnce:
			out = append(out, option{key: 'y', choice: c, label: "yes, once"})
		case core.ChoiceSession:
			out = append(out, option{key: 's', choice: c, label: "yes, for this session"})
		case core.ChoiceAlways:
			label := "always; adds the rule " + display.Visible(q.RulePreview)
			if q.rules != "" {
				label += " to " + display.Visible(q.rules)
			}
			out = append(out, option{key: 'a', choice: c, label: label})
		case core.ChoiceDeny:
			out = append(out, option{key: 'n', choice: c, label: "no"}, option{key: 'r', choice: c, label: "no, and say why", reason: true})
		case core.ChoiceYes:
			label := "yes"
			if q.Kind == core.QuestionURL {
				label = "done"
			}
			out = append(out, option{key: 'y', choice: c, label: label})
		case core.ChoiceNo:
			out = append(out, option{key: 'n', choice: c, label: "no"})
		default:
			out = append(out, option{key: rune('1' + i), choice: c, label: display.Visible(string(c))})
		}
	}
	return out
}

// dismissed is the answer of a person who turns away.
func (d *dialog) dismissed() core.Answer {
	for _, o := range d.options {
		if o.choice == core.ChoiceDeny || o.choice == core.ChoiceNo {
			return core.Answer{Choice: o.choice}
		}
	}
	return core.Answer{}
}

// typing reports whether the next answer is a text.
func (d *dialog) typing() bool { return d.reason || len(d.fields) > 0 }

// label says what to type.
func (d *dialog) label() string {
	if d.reason {
		return "Why not?"
	}
	return d.fields[d.at].label()
}

// pick takes an option. It returns nil when a reason is to be typed.
func (d *dialog) pick(o option) *core.Answer {
	if o.reason {
		d.reason = true
		return nil
	}
	return &core.Answer{Choice: o.choice}
}

// enter takes a typed text. It returns nil when there is more to fill in, and
// an error for a text that does not fit.
func (d *dialog) enter(text string) (*core.Answer, error) {
	if d.reason {
		return &core.Answer{Choice: core.ChoiceDeny, Reason: strings.TrimSpace(text)}, nil
	}
	value, err := d.fields[d.at].parse(text)
	if err != nil {
		return nil, err
	}
	d.values = append(d.values, value)
	d.at++
	if d.at < len(d.fields) {
		return nil, nil
	}
	return &core.Answer{Choice: core.ChoiceYes, Values: formValues(d.fields, d.values)}, nil
}

// answerLine takes a line as an answer: a key, a choice's name, "n because …".
func (d *dialog) answerLine(line string) (*core.Answer, error) {
	if d.typing() {
		return d.enter(line)
	}
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(line, " ")
	for _, o := range d.options {
		if word != string(o.key) && !strings.EqualFold(word, string(o.choice)) {
			continue
		}
		switch {
		case o.choice == core.ChoiceDeny && rest != "":
			return &core.Answer{Choice: o.choice, Reason: rest}, nil
		case rest == "":
			return d.pick(o), nil
		}
	}
	if line == "" {
		a := d.dismissed()
		return &a, nil
	}
	return nil, errors.New("that is not on offer")
}

// head is the question itself, in full.
func (s *scene) head(d *dialog) []string {
	title := display.Visible(d.Title)
	if len(d.AgentPath) > 0 {
		title = "[" + display.Visible(strings.Join(d.AgentPath, "/")) + "] " + title
	}
	out := s.fold(bold, title, s.width, s.paint(yellow, "? "), "  ")
	if d.Detail != "" {
		out = append(out, s.fold(plain, display.Visible(d.Detail), s.width, "  ", "  ")...)
	}
	for _, a := range d.Accesses {
		if words := a.String(); len(d.Accesses) > 1 || !strings.Contains(d.Title, words[1:]) { // but for the capital
			out = append(out, s.fold(dim, display.Visible(words), s.width, "  - ", "    ")...)
		}
	}
	if d.URL != "" {
		out = append(out, s.fold(underline, display.Visible(d.URL), 0, "  ", "  ")...)
	}
	if d.broken != nil {
		out = append(out, s.fold(red, "this form cannot be filled in here: "+display.Printable(d.broken.Error()), s.width, "  ", "  ")...)
	}
	return out
}

// choices lists the options; selected is marked, -1 marks none.
func (s *scene) choices(d *dialog, selected int) []string {
	var out []string
	for i, o := range d.options {
		pointer, st := "  ", plain
		if i == selected {
			pointer, st = s.paint(cyan, "› "), bold
		}
		out = append(out, s.fold(st, o.label, s.width, pointer+s.paint(cyan, string(o.key))+" ", "    ")...)
	}
	return out
}

// keysOf lists the keys of the options: "y/s/n".
func (d *dialog) keysOf() string {
	var keys []string
	for _, o := range d.options {
		keys = append(keys, string(o.key))
	}
	return strings.Join(keys, "/")
}

// hint says how to answer.
func (d *dialog) hint() string {
	if d.typing() {
		if len(d.fields) > 1 {
			return fmt.Sprintf("field %d of %d", d.at+1, len(d.fields))
		}
		return ""
	}
	return d.keysOf()
}
