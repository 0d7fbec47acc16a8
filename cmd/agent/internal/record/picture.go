package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
)

const (
	columns    = 118
	charWidth  = 7.25
	lineHeight = 17
	margin     = 14
)

// The colours of the picture.
const (
	white  = "#e8eaed"
	grey   = "#9aa0a6"
	red    = "#f28b82"
	green  = "#81c995"
	yellow = "#fdd663"
	blue   = "#8ab4f8"
	violet = "#c58af9"
	cyan   = "#78d9ec"
)

// line is a line of coloured text.
type line []run

type run struct {
	text, fill string
	back       string // colour of the background; empty is the picture's
	bold       bool
}

// picture draws lines as a terminal shows them.
func picture(label string, lines []line) []byte {
	width, height := columns*charWidth+2*margin, len(lines)*lineHeight+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" role="img" aria-label="%s">`+"\n", width, height, label)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#16181d"/>`+"\n")
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="12">`+"\n")
	for i, l := range lines {
		if len(l) == 0 {
			continue
		}
		column := 0
		for _, r := range l {
			if r.back != "" {
				fmt.Fprintf(&b, `<rect x="%g" y="%d" width="%g" height="%d" fill="%s"/>`+"\n", margin+float64(column)*charWidth, margin+i*lineHeight, float64(r.columns())*charWidth, lineHeight, r.back)
			}
			column += r.columns()
		}
		fmt.Fprintf(&b, `<text xml:space="preserve" x="%d" y="%d" fill="%s">`, margin, margin+(i+1)*lineHeight-5, l[0].fill)
		for j, r := range l {
			if j == 0 && !r.bold {
				_ = xml.EscapeText(&b, []byte(r.text)) // a buffer takes everything
				continue
			}
			weight := ""
			if r.bold {
				weight = ` font-weight="bold"`
			}
			fmt.Fprintf(&b, `<tspan fill="%s"%s>`, r.fill, weight)
			_ = xml.EscapeText(&b, []byte(r.text))
			b.WriteString("</tspan>")
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

func (r run) columns() int { return ansi.StringWidth(r.text) }

// styled converts a line of the terminal.
func styled(cells []vt.Cell) line {
	var l line
	for _, c := range cells {
		r := styleOf(c.Style)
		if n := len(l); n > 0 && l[n-1].fill == r.fill && l[n-1].back == r.back && l[n-1].bold == r.bold {
			l[n-1].text += c.Text
			continue
		}
		r.text = c.Text
		l = append(l, r)
	}
	for len(l) > 0 { // spaces at the end are not drawn
		last := &l[len(l)-1]
		if last.text = strings.TrimRight(last.text, " "); last.text != "" {
			break
		}
		l = l[:len(l)-1]
	}
	return l
}

// styleOf converts the parameters of SGR sequences.
func styleOf(style string) run {
	r := run{fill: white}
	params := strings.Split(style, ";")
	for i := 0; i < len(params); i++ {
		if p := params[i]; (p == "38" || p == "48") && i+4 < len(params) && params[i+1] == "2" {
			var rgb [3]uint8
			_, _ = fmt.Sscan(strings.Join(params[i+2:i+5], " "), &rgb[0], &rgb[1], &rgb[2])
			colour := fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
			if i += 4; p == "38" {
				r.fill = colour
			} else {
				r.back = colour
			}
			continue
		}
		switch params[i] {
		case "1":
			r.bold = true
		case "2":
			r.fill = grey
		case "31":
			r.fill = red
		case "32":
			r.fill = green
		case "33":
			r.fill = yellow
		case "34":
			r.fill = blue
		case "35":
			r.fill = violet
		case "36":
			r.fill = cyan
		}
	}
	return r
}
