package pdftext

import (
	"math"

	"github.com/ledongthuc/pdf"
)

// matrix is [a b c d e f] of an affine transformation.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// mul returns the transformation that applies m, then n.
func (m matrix) mul(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

func move(x, y float64) matrix { return matrix{1, 0, 0, 1, x, y} }

// state is the graphics state, as far as it matters for text.
type state struct {
	matrix     matrix // from user space to the page
	text, line matrix // from text space to user space
	font       *font
	size       float64 // of the font
	char, word float64 // spacing
	scale      float64 // horizontal
	leading    float64
	rise       float64
	jumped     bool // the position of the text was set since the last character
}

// interpreter finds the text in the content of a page.
type interpreter struct {
	out   *writer
	fonts map[string]*font
	forms int // that were drawn
}

// Bounds of a page.
const (
	maxNesting = 12 // of forms
	maxForms   = 1000
	maxStates  = 1000
)

// run interprets a content stream, or the content of a form.
func (in *interpreter) run(content, resources pdf.Value, s state, depth int) {
	if content.IsNull() {
		return
	}
	var saved []state
	pdf.Interpret(content, func(stk *pdf.Stack, op string) {
		args := make([]pdf.Value, stk.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stk.Pop()
		}
		switch op {
		case "q":
			if len(saved) < maxStates {
				saved = append(saved, s)
			}
		case "Q":
			if n := len(saved); n > 0 {
				s, saved = saved[n-1], saved[:n-1]
			}
		case "Do":
			if x := resources.Key("XObject").Key(arg(args, 0).Name()); x.Key("Subtype").Name() == "Form" {
				in.form(x, resources, s, depth)
			}
		case "Tf":
			s.font, s.size = in.font(resources.Key("Font"), arg(args, 0).Name()), arg(args, 1).Float64()
		case "Tj", "'", "\"", "TJ":
			if op == "\"" {
				s.word, s.char = arg(args, 0).Float64(), arg(args, 1).Float64()
			}
			if op == "'" || op == "\"" {
				s.nextLine(0, -s.leading)
			}
			if len(args) > 0 {
				in.show(&s, args[len(args)-1])
			}
		default:
			s.set(op, args)
		}
	})
}

// arg returns an argument, or null.
func arg(args []pdf.Value, i int) pdf.Value {
	if i < len(args) {
		return args[i]
	}
	return pdf.Value{}
}

// form draws a form.
func (in *interpreter) form(x, resources pdf.Value, s state, depth int) {
	if in.forms++; depth >= maxNesting || in.forms > maxForms {
		return
	}
	if own := x.Key("Resources"); !own.IsNull() {
		resources = own
	}
	if m := x.Key("Matrix"); m.Len() == 6 {
		s.matrix = matrixOf(m.Index).mul(s.matrix)
	}
	in.run(x, resources, s, depth+1)
}

func matrixOf(at func(i int) pdf.Value) (m matrix) {
	for i := range m {
		m[i] = at(i).Float64()
	}
	return m
}

// font returns a font of the resources.
func (in *interpreter) font(fonts pdf.Value, name string) *font {
	v := fonts.Key(name)
	if v.IsNull() {
		return nil
	}
	key := name + " " + v.Key("BaseFont").Name() + " " + v.Key("ToUnicode").String()
	f, ok := in.fonts[key]
	if !ok {
		f = newFont(v)
		in.fonts[key] = f
	}
	return f
}

// set changes the state.
func (s *state) set(op string, args []pdf.Value) {
	number := func(i int) float64 { return arg(args, i).Float64() }
	switch op {
	case "cm":
		s.matrix = matrixOf(func(i int) pdf.Value { return arg(args, i) }).mul(s.matrix)
	case "BT":
		s.text, s.line, s.jumped = identity, identity, true
	case "Tm":
		s.line = matrixOf(func(i int) pdf.Value { return arg(args, i) })
		s.text, s.jumped = s.line, true
	case "Td":
		s.nextLine(number(0), number(1))
	case "TD":
		s.leading = -number(1)
		s.nextLine(number(0), number(1))
	case "T*":
		s.nextLine(0, -s.leading)
	case "TL":
		s.leading = number(0)
	case "Tc":
		s.char = number(0)
	case "Tw":
		s.word = number(0)
	case "Tz":
		s.scale = number(0) / 100
	case "Ts":
		s.rise = number(0)
	}
}

func (s *state) nextLine(x, y float64) {
	s.line = move(x, y).mul(s.line)
	s.text, s.jumped = s.line, true
}

// show shows a string, or an array of strings with distances between them.
func (in *interpreter) show(s *state, v pdf.Value) {
	if s.font == nil {
		return
	}
	if v.Kind() != pdf.Array {
		in.showString(s, v.RawString())
		return
	}
	for i := range v.Len() {
		if x := v.Index(i); x.Kind() == pdf.String {
			in.showString(s, x.RawString())
		} else {
			s.text = move(-x.Float64()/1000*s.size*s.scale, 0).mul(s.text)
		}
	}
}

// showString shows a string and moves to its end.
func (in *interpreter) showString(s *state, raw string) {
	at := func() (x, y float64) {
		m := move(0, s.rise).mul(s.text).mul(s.matrix)
		return m[4], m[5]
	}
	m := s.text.mul(s.matrix)
	size := math.Abs(s.size) * math.Hypot(m[2], m[3])
	for _, g := range s.font.glyphs(raw) {
		x, y := at()
		advance := g.width*s.size + s.char
		if g.space {
			advance += s.word
		}
		s.text = move(advance*s.scale, 0).mul(s.text)
		endX, endY := at()
		in.out.add(placed{
			text: g.text, x: x, y: y, endX: endX, endY: endY, size: size, angle: math.Atan2(m[1], m[0]),
			guessed: !s.font.known(), jumped: s.jumped,
		})
		s.jumped = false
	}
}
