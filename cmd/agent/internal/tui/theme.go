package tui

import (
	"fmt"
	"image/color"
	"maps"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// Themes lists the names of the themes. Those that are neither dark nor light suit
// the terminal's background, as far as it is known.
func Themes() []string {
	return []string{"auto", "dark", "light", "high-contrast", "colorblind", "ansi"}
}

// background is that of the terminal.
type background int

const (
	unknownBackground background = iota
	darkBackground
	lightBackground
)

// palette has the colours of roles: RRGGBB, and after a slash that of 256 colours,
// if it is not the nearest one.
type palette map[style]string

// palettes are those of the themes, on dark and on light backgrounds.
var palettes = map[string][2]palette{
	"auto": {
		{
			red: "f85149", green: "3fb950", yellow: "d29922", magenta: "d2a8ff", cyan: "56d4dd", dim: "8b949e", comment: "8b949e",
			keyword: "ff7b72", typeName: "ffa657", function: "d2a8ff", literal: "a5d6ff", number: "79c0ff", name: "7ee787",
			addedLine: "12261e/22", removedLine: "301a1c/52", addedWord: "1f5a34/28", removedWord: "6e2b2b/88",
		}, {
			red: "cf222e", green: "1a7f37", yellow: "9a6700", magenta: "8250df", cyan: "1b7c83", dim: "59636e", comment: "59636e",
			keyword: "cf222e", typeName: "953800", function: "8250df", literal: "0a3069", number: "0550ae", name: "116329",
			addedLine: "dafbe1/194", removedLine: "ffebe9/224", addedWord: "aceebb/157", removedWord: "ffcecb/217",
		},
	},
	"high-contrast": {
		{
			red: "ff9492", green: "72f088", yellow: "f0b72f", magenta: "dbb7ff", cyan: "5fe0ff", dim: "d9dee3", comment: "bdc4cc",
			keyword: "ff9492", typeName: "ffb757", function: "dbb7ff", literal: "addcff", number: "91cbff", name: "72f088",
			addedLine: "033a16/22", removedLine: "5c0c14/52", addedWord: "0f7a34/28", removedWord: "a4232d/124",
		}, {
			red: "86061d", green: "024c1a", yellow: "4e2c00", magenta: "512598", cyan: "023b95", dim: "25292e", comment: "4b535d",
			keyword: "a0111f", typeName: "702c00", function: "622cbc", literal: "032563", number: "023b95", name: "024c1a",
			addedLine: "d2fedb/194", removedLine: "fff0ee/224", addedWord: "82e596/120", removedWord: "ffc1bc/217",
		},
	},
	"colorblind": { // orange and blue in place of red and green
		{
			red: "f0883e", green: "58a6ff", yellow: "f2cc60", magenta: "d2a8ff", cyan: "79c0ff", dim: "8b949e", comment: "8b949e",
			keyword: "ec8e2c", typeName: "fdac54", function: "d2a8ff", literal: "a5d6ff", number: "79c0ff", name: "cae8ff",
			addedLine: "0d2547/17", removedLine: "3d2207/58", addedWord: "1f4e9c/25", removedWord: "7a4510/94",
		}, {
			red: "9e4c00", green: "0550ae", yellow: "7d4e00", magenta: "8250df", cyan: "0969da", dim: "59636e", comment: "59636e",
			keyword: "9e4c00", typeName: "702c00", function: "8250df", literal: "0a3069", number: "0550ae", name: "033d8b",
			addedLine: "ddf4ff/195", removedLine: "fff1e5/230", addedWord: "b6e3ff/153", removedWord: "ffd8b5/223",
		},
	},
}

// ansiThemes are what remains of themes with 16 colours.
var ansiThemes = map[string]theme{
	"high-contrast": {dim: "", comment: "36"},
	"colorblind":    {red: "33", green: "34", removedLine: "", literal: "36", function: "35"},
}

// newTheme returns a theme by its name.
func newTheme(named string, depth colorprofile.Profile, bg background) theme {
	family := named
	switch named {
	case "dark":
		family, bg = "auto", darkBackground
	case "light":
		family, bg = "auto", lightBackground
	}
	both, ok := palettes[family]
	t := maps.Clone(ansiTheme)
	maps.Copy(t, ansiThemes[family])
	if !ok || depth < colorprofile.ANSI256 || family == "auto" && bg == unknownBackground {
		return t
	}
	colors := both[0]
	if bg == lightBackground {
		colors = both[1]
	}
	for role, value := range colors {
		param := "38"
		switch role {
		case addedLine, removedLine, addedWord, removedWord:
			param = "48"
		}
		t[role] = param + ";" + sgrColor(value, depth)
	}
	return t
}

// sgrColor returns the parameters of a colour of a palette.
func sgrColor(value string, depth colorprofile.Profile) string {
	value, index, ok := strings.Cut(value, "/")
	rgb, _ := strconv.ParseUint(value, 16, 24)
	r, g, b := uint8(rgb>>16), uint8(rgb>>8), uint8(rgb)
	switch {
	case depth >= colorprofile.TrueColor:
		return fmt.Sprintf("2;%d;%d;%d", r, g, b)
	case ok:
		return "5;" + index
	}
	return fmt.Sprintf("5;%d", ansi.Convert256(color.RGBA{r, g, b, 0xff}))
}

// newLook returns the look of a terminal.
func newLook(env func(string) string, named string) *look {
	var vars []string
	for _, name := range []string{"TERM", "COLORTERM", "WT_SESSION", "GOOGLE_CLOUD_SHELL"} {
		vars = append(vars, name+"="+env(name))
	}
	l := &look{depth: colorprofile.Env(vars), background: backgroundOf(env("COLORFGBG"))}
	l.use(named)
	return l
}

// use sets the theme.
func (l *look) use(named string) {
	l.named, l.theme = named, newTheme(named, l.depth, l.background)
}

// asks reports whether the theme depends on the terminal's background, and the
// terminal can be asked for it.
func (l *look) asks(env func(string) string) bool {
	return l.depth >= colorprofile.ANSI256 && !strings.HasPrefix(env("TERM"), "linux") && l.named != "ansi"
}

// backgroundOf reads the variable COLORFGBG, "FOREGROUND;BACKGROUND" as numbers of
// the 16 colours.
func backgroundOf(colorfgbg string) background {
	_, last, ok := strings.Cut(colorfgbg, ";")
	if i := strings.LastIndexByte(last, ';'); i >= 0 {
		last = last[i+1:]
	}
	n, err := strconv.Atoi(last)
	switch {
	case !ok || err != nil || n < 0 || n > 15:
		return unknownBackground
	case n == 7 || n > 8:
		return lightBackground
	}
	return darkBackground
}
