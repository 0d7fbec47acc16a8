package tui

import (
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// vim edits the input box with the keys of vim. Its normal mode knows counts, the
// operators d, c and y, the usual motions and text objects, and "." to repeat.
type vim struct {
	normal   bool
	pending  string // the keys of an unfinished command
	found    string // the last f, F, t or T with its character
	register string
	lines    bool // the register has whole lines

	change string            // the command of the last change
	typed  []tea.KeyPressMsg // what was typed in insert mode for it
	again  bool              // it is being repeated
}

// commanding reports whether letters are commands.
func (e *editor) commanding() bool { return e.vim != nil && e.vim.normal }

// leaveInsert switches vim to normal mode. It reports whether that was a change.
func (e *editor) leaveInsert() bool {
	if e.vim == nil || e.vim.normal || e.search != nil {
		return false
	}
	e.vim.normal, e.vim.pending = true, ""
	if text, at := e.cursor(); at > 0 && text[at-1] != '\n' {
		e.place(text, at-1)
	}
	return true
}

// cursor returns the text and the cursor's position in it.
func (e *editor) cursor() (text []rune, at int) {
	text = []rune(e.text())
	for row := e.area.Line(); row > 0; row-- {
		at += slices.Index(text[at:], '\n') + 1
	}
	return text, min(at+e.area.Column(), len(text))
}

// place sets the text and the cursor's position in it.
func (e *editor) place(text []rune, at int) {
	at = max(0, min(at, len(text)))
	e.area.SetValue(string(text[at:]))
	e.area.MoveToBegin()
	e.area.InsertString(string(text[:at]))
}

// vimKey handles a key in vim's way. It reports whether it took the key.
func (e *editor) vimKey(msg tea.KeyPressMsg) bool {
	v := e.vim
	switch {
	case !v.normal:
		if !v.again {
			v.typed = append(v.typed, msg)
		}
		return false
	case msg.String() == "backspace":
		msg = tea.KeyPressMsg{Code: 'h', Text: "h"}
	case msg.String() == "esc":
		v.pending = ""
		return true
	case msg.Text == "":
		return false
	}
	v.pending += msg.Text
	c, done := parseVim(v.pending)
	if !done {
		return true
	}
	keys := v.pending
	v.pending = ""
	e.command(c, keys)
	return true
}

// vimCommand is a command of normal mode.
type vimCommand struct {
	count  int  // 0 if none was given
	op     rune // d, c or y; 0 for a motion or another command
	name   rune
	detail rune // the character of f, F, t, T, r, g, i or a
}

// times returns how often the command is carried out.
func (c vimCommand) times() int { return min(max(c.count, 1), 1000) }

// parseVim parses the keys of a command. It is done if no more keys belong to it.
func parseVim(keys string) (c vimCommand, done bool) {
	r := []rune(keys)
	count := func() {
		i := 0
		for i < len(r) && r[i] >= '0' && r[i] <= '9' && (i > 0 || r[0] != '0') {
			i++
		}
		if n, err := strconv.Atoi(string(r[:i])); err == nil {
			c.count = max(c.count, 1) * n
		}
		r = r[i:]
	}
	next := func() (k rune) {
		if len(r) > 0 {
			k, r = r[0], r[1:]
		}
		return k
	}
	count()
	if c.name = next(); strings.ContainsRune("dcy", c.name) && c.name != 0 {
		c.op = c.name
		count()
		c.name = next()
	}
	switch {
	case c.name == 0:
		return c, false
	case strings.ContainsRune("fFtTg", c.name), c.op == 0 && c.name == 'r', c.op != 0 && strings.ContainsRune("ia", c.name):
		c.detail = next()
		return c, c.detail != 0
	}
	return c, true
}

// command carries out a command of normal mode; an unknown one does nothing.
func (e *editor) command(c vimCommand, keys string) {
	v := e.vim
	text, at := e.cursor()
	switch {
	case c.op == 0 && c.name == 'u':
		was := e.text()
		e.undo()
		text, _ := e.cursor()
		e.place(text, len([]rune(commonPrefix([]string{was, string(text)}))))
		e.settle()
		return
	case c.op == 0 && c.name == '.':
		e.repeat()
		return
	case c.op == 0 && e.empty() && strings.ContainsRune("/!@", c.name):
		v.normal = false
		e.area.InsertString(string(c.name))
		return
	case c.op == 0 && c.name == 'k' && !slices.Contains(text[:at], '\n'):
		e.recall(-1)
		return
	case c.op == 0 && c.name == 'j' && !slices.Contains(text[at:], '\n'):
		e.recall(1)
		return
	}
	if c.op == 0 {
		if to, ok := v.motion(text, at, c); ok {
			e.place(text, to.at)
			e.settle()
			return
		}
		c = c.long()
	}
	e.keep()
	var changed bool
	if c.op != 0 {
		changed = e.operate(c, text, at)
	} else {
		changed = e.edit(c, text, at)
	}
	if changed && !v.again {
		v.change, v.typed = keys, nil
	}
	e.settle()
}

// long returns the command that a short one stands for.
func (c vimCommand) long() vimCommand {
	for short, full := range map[rune]string{'x': "dl", 'X': "dh", 's': "cl", 'D': "d$", 'C': "c$", 'S': "cc", 'Y': "yy"} {
		if c.name == short {
			c.op, c.name = rune(full[0]), rune(full[1])
			return c
		}
	}
	return c
}

// settle keeps the cursor on a character, as normal mode does.
func (e *editor) settle() {
	if text, at := e.cursor(); e.vim.normal && at > 0 && (at == len(text) || text[at] == '\n') && text[at-1] != '\n' {
		e.place(text, at-1)
	}
}

// repeat repeats the last change, with what was typed for it.
func (e *editor) repeat() {
	v := e.vim
	c, done := parseVim(v.change)
	if !done {
		return
	}
	v.again = true
	e.command(c, v.change)
	if !v.normal {
		for _, msg := range v.typed {
			e.key(msg)
		}
		e.leaveInsert()
	}
	v.again = false
}

// operate deletes, changes or copies what a motion or text object spans.
func (e *editor) operate(c vimCommand, text []rune, at int) (changed bool) {
	v := e.vim
	from, to, lines, ok := v.span(text, at, c)
	if !ok {
		return false
	}
	v.register, v.lines = string(text[from:to]), lines
	if c.op == 'y' {
		e.place(text, min(from, at))
		return false
	}
	if lines && c.op == 'd' { // with one of the line ends around them
		if to < len(text) {
			to++
		} else if from > 0 {
			from--
		}
	}
	e.place(slices.Delete(slices.Clone(text), from, to), from)
	if lines && c.op == 'd' {
		rest, pos := e.cursor()
		e.place(rest, lineStart(rest, min(pos, len(rest))))
	}
	v.normal = c.op != 'c'
	return true
}

// edit carries out the commands that are no operators.
func (e *editor) edit(c vimCommand, text []rune, at int) (changed bool) {
	v := e.vim
	start, end := lineStart(text, at), lineEnd(text, at)
	insert := func(text []rune, at int) {
		v.normal = false
		e.place(text, at)
	}
	switch c.name {
	case 'i':
		insert(text, at)
	case 'a':
		insert(text, min(at+1, end))
	case 'I':
		insert(text, firstText(text, at))
	case 'A':
		insert(text, end)
	case 'o':
		insert(slices.Insert(slices.Clone(text), end, '\n'), end+1)
	case 'O':
		insert(slices.Insert(slices.Clone(text), start, '\n'), start)
	case 'p', 'P':
		e.put(c, text, at)
	case 'r':
		if at+c.times() > end {
			return false
		}
		for i := range c.times() {
			text[at+i] = c.detail
		}
		e.place(text, at+c.times()-1)
	case '~':
		to := min(at+c.times(), end)
		for i := at; i < to; i++ {
			text[i] = swapCase(text[i])
		}
		e.place(text, to)
	case 'J':
		if end == len(text) {
			return false
		}
		rest := []rune(" " + strings.TrimLeft(string(text[end+1:]), " \t"))
		e.place(append(slices.Clone(text[:end]), rest...), end)
	default:
		return false
	}
	return true
}

// put inserts the register after or before the cursor.
func (e *editor) put(c vimCommand, text []rune, at int) {
	v := e.vim
	what := strings.Repeat(v.register, c.times())
	pos := at
	switch {
	case v.lines && c.name == 'p':
		what, pos = strings.Repeat("\n"+v.register, c.times()), lineEnd(text, at)
	case v.lines:
		what, pos = strings.Repeat(v.register+"\n", c.times()), lineStart(text, at)
	case c.name == 'p' && at < len(text) && text[at] != '\n':
		pos++
	}
	e.place(slices.Insert(slices.Clone(text), pos, []rune(what)...), pos+len([]rune(what))-1)
	if v.lines {
		now, _ := e.cursor()
		e.place(now, pos+strings.Count(what[:1], "\n"))
	}
}
