package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Rank returns the texts that match a query fuzzily, the best first.
func Rank(query string, texts []string) []string {
	var out []string
	for _, m := range fuzzy(query, texts) {
		out = append(out, texts[m.at])
	}
	return out
}

// suggestMsg are the files for a word.
type suggestMsg struct {
	word string
	list []string
}

// suggest lists what the word before the cursor may be: commands, or files, which
// are looked up in the background.
func (l *lineScreen) suggest() {
	word := l.editor.word()
	switch {
	case strings.HasPrefix(word, "/"):
		l.word, l.list, l.at = word, commandsFor(l.commands(), word), -1
		if len(l.list) == 1 && l.list[0] == word {
			l.list = nil
		}
	case strings.HasPrefix(word, "@") && l.Complete != nil:
		l.wg.Go(func() {
			l.post(suggestMsg{word, filesFor(l.Complete, word)})
		})
		return // until then the list stays
	default:
		l.list, l.at = nil, -1
	}
	l.suggesting = l.list != nil
}

// filesFor lists the files for a word.
func filesFor(complete func(string) []string, word string) []string {
	var list []string
	for _, f := range complete(strings.TrimPrefix(word[1:], `"`)) {
		if strings.ContainsAny(f, " \t") {
			f = `"` + f + `"`
		}
		list = append(list, "@"+f)
	}
	return list
}

// suggested takes the files for a word.
func (l *lineScreen) suggested(m suggestMsg) {
	if l.editor.word() != m.word || l.dialog != nil {
		return
	}
	at := 0
	if l.suggesting && l.at > 0 { // chosen in the list of the word so far
		at = max(0, slices.Index(m.list, l.list[l.at]))
	}
	l.word, l.list, l.at = m.word, m.list, at
	if l.suggesting = len(m.list) > 0; !l.suggesting || m.list[0] == m.word {
		l.list, l.at, l.suggesting = nil, -1, false
	}
}

// suggestKey handles a key for the suggestions. It reports whether it was one.
func (l *lineScreen) suggestKey(msg tea.KeyPressMsg) bool {
	if !l.suggesting || len(l.list) == 0 || l.editor.search != nil {
		return false
	}
	if word := l.editor.word(); word != l.word { // the list is of a word that was typed further
		switch msg.String() {
		case "enter", "tab":
			l.list, l.at, l.suggesting = nil, -1, false
			return false
		case "up", "down", "ctrl+n", "ctrl+p":
		default:
			return false
		}
	}
	switch msg.String() {
	case "down", "ctrl+n":
		l.at = min(l.at+1, len(l.list)-1)
	case "up", "ctrl+p":
		if l.at < 0 {
			return false // the history
		}
		if l.at--; l.at < 0 && strings.HasPrefix(l.word, "@") {
			l.at = 0
		}
	case "esc":
		l.list, l.at, l.suggesting = nil, -1, false
	case "enter":
		if l.at < 0 {
			return false
		}
		l.accept(l.list[l.at])
	case "tab":
		if l.at < 0 && len(l.list) > 1 && strings.HasPrefix(l.word, "/") {
			return false // completes what they have in common
		}
		l.accept(l.list[max(0, l.at)])
	default:
		return false
	}
	return true
}

// accept replaces the word before the cursor.
func (l *lineScreen) accept(by string) {
	word := l.word
	l.list, l.at, l.suggesting = nil, -1, false
	if strings.HasSuffix(by, "/") {
		l.editor.complete(word, by)
		l.suggest()
		return
	}
	l.editor.complete(word, by+" ")
}
