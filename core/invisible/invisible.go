package invisible

import (
	"strings"
	"unicode"
)

// Is reports whether a character is invisible or changes how others are shown:
// control and bidirectional characters, those of zero width, fillers, and tags and
// variation selectors, which can spell invisible words. The joiners of scripts and
// emoji, and the selectors of text and emoji style, are not.
func Is(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' '
	case r == 0x200c, r == 0x200d, r == 0xfe0e, r == 0xfe0f, unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	}
	return r >= 0xe0000 && r <= 0xe0fff || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Strip removes these characters, except line breaks and tabs.
func Strip(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && Is(r) {
			return -1
		}
		return r
	}, text)
}
