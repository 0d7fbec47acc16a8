package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
)

// dialog is the state of a question that is shown.
type dialog struct {
	*pending
	options    []option
	fields     []field // of a form
	at         int     // index of the current field
	values     []string
	offer      int  // index of the offer that the options accept
	explaining bool // the user is entering a reason
	formErr    error
}

// option is an answer that can be selected with a key.
type option struct {
	key    rune
	choice core.Choice
	label  string
	reason bool            // the user is asked for a reason
	values json.RawMessage // of a form
}

func newDialog(q *pending) *dialog {
	d := &dialog{pending: q}
	if q.list != nil {
		return d
	}
	if q.Kind == core.QuestionForm {
		d.fields, d.formErr = parseForm(q.Schema)
		if d.options = fieldOptions(d.fields); len(d.options) > 0 {
			d.fields = nil
		}
		if d.formErr == nil {
			return d
		}
	}
	d.options = d.reviewOptions(d.optionsOf())
	return d
}

// fieldOptions returns the options of a form that has only a choice.
func fieldOptions(fields []field) (out []option) {
	const most = 9 // keys
	if len(fields) != 1 || len(fields[0].schema.Enum) > most {
		return nil
	}
	f := fields[0]
	for i, value := range f.schema.Enum {
		out = append(out, option{
			key: rune('1' + i), choice: core.ChoiceYes, label: display.Visible(value), values: formValues(fields, []string{quoted(value)}),
		})
	}
	return out
}

// widen is the option that replaces the offer by a wider one, or by the narrowest.
const widen core.Choice = "wider"

// optionsOf returns the options of a question.
func (d *dialog) optionsOf() []option {
	q, choices := d.pending, d.Choices
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
			label := "yes, for this session"
			if len(q.Offers) > 0 {
				label += ": " + d.rulesOf(d.offer)
			}
			out = append(out, option{key: 's', choice: c, label: label})
		case core.ChoiceAlways:
			label := "always: add " + d.rulesOf(d.offer)
			if q.rules != "" {
				label += " to " + display.Visible(q.rules)
			}
			out = append(out, option{key: 'a', choice: c, label: label})
		case core.ChoiceDeny:
			if n := len(q.Offers); n > 1 {
				word, next := "wider", (d.offer+1)%n
				if next == 0 {
					word = "narrower"
				}
				out = append(out, option{key: 'w', choice: widen, label: word + ": " + d.rulesOf(next)})
			}
			out = append(out, option{key: 'n', choice: c, label: "no"}, option{key: 'r', choice: c, label: "no, with a reason", reason: true})
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

// rulesOf lists the rules of an offer.
func (d *dialog) rulesOf(offer int) string {
	if offer >= len(d.Offers) {
		return ""
	}
	return display.Visible(strings.Join(d.Offers[offer].Rules, ", "))
}

// dismissal returns the answer of a user who dismisses the question.
func (d *dialog) dismissal() core.Answer {
	for _, o := range d.options {
		if o.choice == core.ChoiceDeny || o.choice == core.ChoiceNo {
			return core.Answer{Choice: o.choice}
		}
	}
	return core.Answer{}
}

// dismissed names the answer of a user who dismisses the question.
func (d *dialog) dismissed() string {
	if d.dismissal().Choice == "" {
		return "no answer"
	}
	return "no"
}

// typing reports whether the answer is typed.
func (d *dialog) typing() bool { return d.explaining || len(d.fields) > 0 }

// label is the label of the input box.
func (d *dialog) label() string {
	switch {
	case d.explaining && d.review != nil && d.review.Markdown:
		return "Comments?"
	case d.explaining:
		return "Reason?"
	}
	return d.fields[d.at].label()
}

// pick selects an option. It returns nil if a reason must be typed, or if the
// options have changed.
func (d *dialog) pick(o option) *core.Answer {
	switch {
	case o.reason:
		d.explaining = true
		return nil
	case o.choice == widen:
		d.offer = (d.offer + 1) % len(d.Offers)
		d.options = d.reviewOptions(d.optionsOf())
		return nil
	case o.choice == acceptEdits:
		if err := d.review.AcceptEdits(); err != nil {
			d.formErr = err
			return nil
		}
		o.choice = core.ChoiceOnce
	case o.choice == editReview, o.choice == viewReview, o.choice == hunkReview:
		return nil // only a screen can do it
	}
	if o.choice != core.ChoiceDeny {
		d.review.accept()
	}
	return &core.Answer{Choice: o.choice, Offer: d.offer, Values: o.values}
}

// enter handles a typed text. It returns nil if there are more fields, and an
// error for an invalid text.
func (d *dialog) enter(text string) (*core.Answer, error) {
	if d.explaining {
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

// answerLine parses a line as an answer: a key, a choice, or "n REASON".
func (d *dialog) answerLine(line string) (*core.Answer, error) {
	switch {
	case d.list != nil:
		return d.pickLine(line)
	case d.typing():
		return d.enter(line)
	}
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(line, " ")
	for _, o := range d.options {
		if strings.EqualFold(line, o.label) {
			return d.pick(o), nil
		}
		if word != string(o.key) && (!strings.EqualFold(word, string(o.choice)) || o.values != nil) {
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
		a := d.dismissal()
		return &a, nil
	}
	return nil, errors.New("not one of the choices")
}

// head formats the whole question.
func (s *scene) head(d *dialog) []string {
	title := display.Visible(s.relative(d.Title))
	if len(d.AgentPath) > 0 {
		title = "[" + display.Visible(strings.Join(d.AgentPath, "/")) + "] " + title
	}
	out := s.fold(bold, title, s.width, s.paint(yellow, "? "), "  ")
	if d.Detail != "" {
		out = append(out, s.fold(plain, display.Visible(d.Detail), s.width, "  ", "  ")...)
	}
	for _, a := range d.Accesses {
		if !strings.Contains(d.Title, a.Resource) {
			out = append(out, s.fold(dim, display.Visible(a.String()), s.width, "  - ", "    ")...)
		}
	}
	if d.URL != "" && s.width == 0 {
		out = append(out, "  "+display.Visible(d.URL))
	}
	if d.formErr != nil {
		out = append(out, s.fold(red, "✗ "+display.Printable(d.formErr.Error()), s.width, "  ", "  ")...)
	}
	return out
}

// choices formats the options in at most room rows; at is the row of the selected
// one. If they do not fit, those around it are shown.
func (s *scene) choices(d *dialog, selected, room int) (rows []string, at int) {
	end := 0
	for i, o := range d.options {
		pointer, st := "  ", plain
		if i == selected {
			pointer, st, at = s.paint(cyan, "› "), bold, len(rows)
		}
		rows = append(rows, s.fold(st, o.label, s.width, pointer+s.paint(cyan, string(o.key))+" ", "    ")...)
		if i == selected {
			end = len(rows)
		}
	}
	top := max(0, min(at-room/2, len(rows)-room))
	top = min(max(top, end-room), at)
	return rows[top:min(len(rows), top+room)], at - top
}

// hint tells which field of a form it is.
func (d *dialog) hint() string {
	if len(d.fields) > 1 {
		return fmt.Sprintf("(field %d of %d)", d.at+1, len(d.fields))
	}
	return ""
}
