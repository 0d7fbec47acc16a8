package output

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

// Bounds of what a program can still overwrite.
const (
	maxRows = 64      // lines
	maxCols = 8 << 10 // characters of a line
	maxMove = 512     // columns that an empty line can have
)

// Plain returns text as a terminal would show it, without escape sequences: what
// was overwritten, as by a progress bar, is gone.
func Plain(text string) string {
	if special(text) == len(text) {
		return text
	}
	var out strings.Builder
	p := newPlain(func(text string) { out.WriteString(text) })
	p.write(text)
	p.flush()
	return out.String()
}

// PlainReader returns what r has, as [Plain] does.
func PlainReader(r io.Reader) io.Reader { return &plainReader{from: r} }

type plainReader struct {
	from  io.Reader
	plain *plain
	ready []byte
	err   error
}

// Read implements [io.Reader].
func (r *plainReader) Read(b []byte) (int, error) {
	if r.plain == nil {
		r.plain = newPlain(func(text string) { r.ready = append(r.ready, text...) })
	}
	buf := make([]byte, 32<<10)
	for len(r.ready) == 0 && r.err == nil {
		var n int
		n, r.err = r.from.Read(buf)
		r.plain.write(string(buf[:n]))
		if r.err != nil {
			r.plain.flush()
		}
	}
	n := copy(b, r.ready)
	r.ready = r.ready[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}

// plain is a terminal without a screen: a stream of text in which the last lines
// can still be overwritten. As long as nothing is, they are one string.
type plain struct {
	out     func(text string)
	parser  *ansi.Parser
	tail    []byte // the last lines, if the cursor is at their end
	changed bool   // what came out is not what was written

	// Else there are rows, and the cursor is somewhere in them.
	rows       [][]rune
	row, col   int
	home       int    // the row of the screen's first line
	saved      [2]int // cursor
	unmoved    int    // new rows since the cursor was moved
	gridActive bool
}

func newPlain(out func(text string)) *plain {
	p := &plain{out: out, parser: ansi.NewParser()}
	p.parser.SetHandler(ansi.Handler{HandleCsi: p.csi, HandleEsc: p.esc, Execute: func(b byte) {
		if b < 0x1b { // else it begins a sequence
			p.control(rune(b))
		}
	}})
	return p
}

// special returns the length of the text before the first control character
// other than a tab and a line feed.
func special(text string) int {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == 0xc2 && i+1 < len(text) && text[i+1] < 0xa0 {
			return i
		}
	}
	return len(text)
}

// write adds valid UTF-8.
func (p *plain) write(text string) {
	for text != "" {
		if p.parser.State() != parser.GroundState {
			if p.breaks(text[0]) {
				p.parser.Reset()
				continue
			}
			_, size := utf8.DecodeRuneInString(text)
			for i := 0; i < size && p.parser.State() != parser.GroundState; i++ {
				p.parser.Advance(text[i]) // a byte within a character may end the sequence
			}
			text = text[size:]
			continue
		}
		n := special(text)
		p.print(text[:n])
		if text = text[n:]; text == "" {
			return
		}
		p.changed = true
		if strings.HasPrefix(text, "\r\n") {
			p.print("\n")
			text = text[2:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		p.control(r)
	}
}

// breaks reports whether a character cannot be part of the present sequence, which
// was then broken off.
func (p *plain) breaks(c byte) bool {
	state := p.parser.State()
	return c == '\n' || c == 0x1b && (state < parser.DcsStringState || state == parser.EscapeState)
}

// control handles one control character.
func (p *plain) control(r rune) {
	switch r {
	case 0x1b:
		p.parser.Advance(0x1b)
	case 0x9b, 0x9d, 0x90, 0x98, 0x9e, 0x9f: // the same as two characters
		p.parser.Advance(0x1b)
		p.parser.Advance(byte(r - 0x40))
	case '\n', '\v', '\f':
		p.print("\n")
	case '\r':
		p.grid()
		p.col = 0
	case '\b':
		p.grid()
		p.col = max(p.col-1, 0)
	}
}

// print adds text without control characters but tabs and line feeds.
func (p *plain) print(text string) {
	for text != "" {
		if !p.gridActive {
			p.tail = append(p.tail, text...)
			p.trim()
			return
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		if r == '\n' {
			p.newline()
		} else {
			p.put(r)
		}
	}
}

// trim passes on what can no longer be overwritten.
func (p *plain) trim() {
	end := len(p.tail)
	if end < 2*maxCols {
		return
	}
	for range maxRows {
		end = bytes.LastIndexByte(p.tail[:end], '\n')
		if end < 0 {
			break
		}
	}
	end = max(end+1, 0)
	for len(p.tail)-end > maxCols { // long lines
		next := bytes.IndexByte(p.tail[end:], '\n')
		if next < 0 || end+next+1 == len(p.tail) {
			end = len(p.tail) - maxCols
			for !utf8.RuneStart(p.tail[end]) {
				end++
			}
			break
		}
		end += next + 1
	}
	p.out(string(p.tail[:end]))
	p.tail = append(p.tail[:0], p.tail[end:]...)
}

// grid makes the last lines rows.
func (p *plain) grid() {
	p.unmoved = 0
	if p.gridActive {
		return
	}
	p.gridActive = true
	p.rows = nil
	for line := range bytes.SplitSeq(p.tail, []byte("\n")) {
		p.rows = append(p.rows, []rune(string(line)))
	}
	p.tail = p.tail[:0]
	p.row = len(p.rows) - 1
	p.col = len(p.rows[p.row])
	p.home = min(p.home, p.row)
	p.scroll()
}

// scroll passes on the rows that are too many.
func (p *plain) scroll() {
	n := len(p.rows) - maxRows
	if n <= 0 {
		return
	}
	for _, row := range p.rows[:n] {
		p.out(string(row) + "\n")
	}
	p.rows = slices.Delete(p.rows, 0, n)
	p.row, p.home, p.saved[0] = max(p.row-n, 0), max(p.home-n, 0), max(p.saved[0]-n, 0)
}

// newline moves the cursor to the beginning of the next row. The rows become text
// again when the cursor was not moved for so many lines.
func (p *plain) newline() {
	p.row, p.col = p.row+1, 0
	if p.row < len(p.rows) {
		return
	}
	p.rows = append(p.rows, nil)
	p.scroll()
	if p.unmoved++; p.unmoved > maxRows {
		p.release()
	}
}

// release makes the rows text again. The cursor must be at their end.
func (p *plain) release() {
	for i, row := range p.rows {
		if i > 0 {
			p.tail = append(p.tail, '\n')
		}
		p.tail = append(p.tail, string(row)...)
	}
	p.rows, p.gridActive = nil, false
	p.trim()
}

// put writes a character at the cursor.
func (p *plain) put(r rune) {
	row := p.rows[p.row]
	for len(row) < p.col {
		row = append(row, ' ')
	}
	if p.col < len(row) {
		row[p.col] = r
	} else {
		row = append(row, r)
	}
	p.rows[p.row] = row
	if p.col++; p.col >= maxCols { // an endless line: go on in the next
		p.row, p.col = p.row+1, 0
		p.rows = slices.Insert(p.rows, p.row, nil)
		p.scroll()
	}
}

// move moves the cursor within the rows. Below the last one there are new ones.
func (p *plain) move(row, col int) {
	p.grid()
	p.row = min(max(row, 0), maxRows-1)
	for len(p.rows) <= p.row {
		p.rows = append(p.rows, nil)
	}
	p.col = min(max(col, 0), max(len(p.rows[p.row]), maxMove))
}

// fresh keeps all that was written, and puts an empty screen below it.
func (p *plain) fresh() {
	p.grid()
	if last := len(p.rows) - 1; len(p.rows[last]) > 0 {
		p.rows = append(p.rows, nil)
		p.scroll()
	}
	p.home = len(p.rows) - 1
	p.row, p.col = p.home, 0
}

// csi handles a control sequence. Those that only change the look are dropped.
func (p *plain) csi(cmd ansi.Cmd, params ansi.Params) {
	n := func(i, def int) int {
		v, _, _ := params.Param(i, def)
		return min(max(v, def), maxCols)
	}
	if cmd.Prefix() != 0 {
		if v := n(0, 0); cmd.Prefix() == '?' && (cmd.Final() == 'h' || cmd.Final() == 'l') && (v == 1049 || v == 1047 || v == 47) {
			p.fresh() // another screen
		}
		return
	}
	if strings.IndexByte("ABCDEFGHJKPX@dfsu`", cmd.Final()) < 0 || cmd.Final() == 'K' && n(0, 0) == 0 && !p.gridActive {
		return
	}
	p.grid()
	switch cmd.Final() {
	case 'A':
		p.move(p.row-n(0, 1), p.col)
	case 'B':
		p.move(p.row+n(0, 1), p.col)
	case 'C':
		p.move(p.row, p.col+n(0, 1))
	case 'D':
		p.move(p.row, p.col-n(0, 1))
	case 'E':
		p.move(p.row+n(0, 1), 0)
	case 'F':
		p.move(p.row-n(0, 1), 0)
	case 'G', '`':
		p.move(p.row, n(0, 1)-1)
	case 'd':
		p.move(p.home+n(0, 1)-1, p.col)
	case 'H', 'f':
		p.move(p.home+n(0, 1)-1, n(1, 1)-1)
	case 's':
		p.saved = [2]int{p.row, p.col}
	case 'u':
		p.move(p.saved[0], p.saved[1])
	default:
		p.erase(cmd.Final(), n(0, 0))
	}
}

// erase handles the control sequences that remove or insert characters.
func (p *plain) erase(final byte, n int) {
	row := p.rows[p.row]
	end := min(p.col, len(row))
	count := min(max(n, 1), len(row)-end)
	switch {
	case final == 'J' && n >= 2:
		p.fresh()
		return
	case final == 'J' && n == 0:
		p.rows = p.rows[:p.row+1]
		row = row[:end]
	case final == 'K' && n == 0:
		row = row[:end]
	case final == 'K' && n == 2:
		row = nil
	case final == 'K' || final == 'J': // to the left
		for i := range row[:end] {
			row[i] = ' '
		}
	case final == 'P':
		row = slices.Delete(row, end, end+count)
	case final == 'X':
		for i := range row[end : end+count] {
			row[end+i] = ' '
		}
	case final == '@' && len(row)+n < maxMove:
		row = slices.Insert(row, end, []rune(strings.Repeat(" ", max(n, 1)))...)
	}
	p.rows[p.row] = row
}

// esc handles a short escape sequence.
func (p *plain) esc(cmd ansi.Cmd) {
	if cmd.Intermediate() != 0 {
		return
	}
	switch cmd.Final() {
	case '7':
		p.grid()
		p.saved = [2]int{p.row, p.col}
	case '8':
		p.move(p.saved[0], p.saved[1])
	case 'D', 'E':
		p.print("\n")
	case 'M':
		p.grid()
		p.move(p.row-1, p.col)
	case 'c':
		p.fresh()
	}
}

// flush passes on the rest.
func (p *plain) flush() {
	if p.gridActive {
		last := len(p.rows) - 1
		for ; last > p.row && len(p.rows[last])+len(p.rows[last-1]) == 0; last-- { // blank, below the cursor
		}
		p.rows = p.rows[:last+1]
		p.release()
	}
	p.out(string(p.tail))
	p.tail = p.tail[:0]
}
