package store

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/redact"
)

// Hidden are the secrets of sensitive files that a model has seen. The journals
// and context stores that share it redact them, also if a later answer or call
// repeats them. The zero value is empty; it is safe for concurrent use.
type Hidden struct {
	mu      sync.Mutex
	secrets map[string]bool
	list    []string
	texts   []string         // whole, of at most maxTexts bytes
	size    int              // of texts
	redact  *redact.Redactor // nil = none
}

// maxHidden bounds the number of values, and with it the time for a record.
const maxHidden = 1000

// maxTexts bounds the memory for whole texts.
const maxTexts = 32 << 20

// minText is the length of the shortest text that is kept whole: shorter ones occur
// in harmless texts.
const minText = 8

// Hide implements core.Hider: it learns a text and its secrets.
func (h *Hidden) Hide(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if text = strings.TrimSpace(text); len(text) >= minText && h.size+len(text) <= maxTexts && !slices.Contains(h.texts, text) {
		h.texts = append(h.texts, text)
		h.size += len(text)
	}
	if h.secrets == nil {
		h.secrets = map[string]bool{}
	}
	before := len(h.list)
	if isEncoded(text) { // its parts mean nothing
		return
	}
	for _, value := range secretsOf(text) {
		if !h.secrets[value] && len(h.list) < maxHidden {
			h.secrets[value] = true
			h.list = append(h.list, value)
		}
	}
	if len(h.list) > before {
		h.redact = redact.New(h.list)
	}
}

// isEncoded reports whether a text is a file in base64.
func isEncoded(text string) bool {
	const long = 1000 // no secret is
	return len(text) > long && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '+' && r != '/' && r != '=' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}

// Learnt returns the whole texts, and the secrets in them.
func (h *Hidden) Learnt() (texts, secrets []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.texts), slices.Clone(h.list)
}

// In reports whether data has one of the secrets.
func (h *Hidden) In(data []byte) bool {
	h.mu.Lock()
	list := h.list
	h.mu.Unlock()
	return slices.ContainsFunc(list, func(secret string) bool { return bytes.Contains(data, []byte(secret)) })
}

// record returns a record without the secrets.
func (h *Hidden) record(line []byte) []byte {
	if h == nil {
		return line
	}
	h.mu.Lock()
	r := h.redact
	h.mu.Unlock()
	if r == nil {
		return line
	}
	return r.Record(line)
}

var (
	// named is the value of a name that says that it is secret, in the syntaxes of
	// most configuration files.
	named    = lazy.Regexp(`(?i)[\w.-]*(?:pass|secret|token|key|cred|auth|pwd|dsn|private)[\w.-]*["']?\s*[=:]\s*["']?([^\s"']{8,})`)
	userinfo = lazy.Regexp(`://[^\s/:@]*:([^\s@]{8,})@`)
	words    = lazy.Regexp(`[^\s"'=:@/\\,;<>(){}\[\]|&?]{8,}`)
)

// secretsOf returns what looks like a secret in the content of a sensitive file:
// values of names that say so, and words that look random.
func secretsOf(text string) []string {
	var found []string
	for _, m := range append(named().FindAllStringSubmatch(text, -1), userinfo().FindAllStringSubmatch(text, -1)...) {
		if value := strings.TrimRight(m[1], ",;"); !strings.HasPrefix(value, "image/") { // how a tool describes a file
			found = append(found, value)
		}
	}
	for _, word := range words().FindAllString(text, -1) {
		if random(word) {
			found = append(found, word)
		}
	}
	return found
}

// random reports whether a word has letters and digits, or is long and of mixed
// case, as passwords and keys do.
func random(word string) bool {
	letters, digits := strings.ContainsFunc(word, unicode.IsLetter), strings.ContainsFunc(word, unicode.IsDigit)
	mixed := len(word) >= 16 && strings.ToLower(word) != word && strings.ToUpper(word) != word
	return letters && digits || mixed
}
