package redact

import (
	"bytes"
	"strings"
)

// shape is the format of a kind of key.
type shape struct {
	prefix string
	// match returns how many bytes after the prefix belong to the key, or -1
	// if it is not one.
	match func(rest []byte) int
}

// shapes are the known formats: those in the rules of
// github.com/gitleaks/gitleaks that have a distinctive prefix. They match in
// plain text, in text within JSON, and in a record.
var shapes = append([]shape{
	{"sk-", func(rest []byte) int { return run(rest, wordChars, 20, true) }}, // OpenAI, Anthropic and others
	{"ghp_", github},
	{"gho_", github},
	{"ghu_", github},
	{"ghs_", github},
	{"ghr_", github},
	{"github_pat_", func(rest []byte) int { return run(rest, wordChars, 22, false) }},
	{"AKIA", aws},
	{"ASIA", aws},
	{"xox", slack},
	{"AIza", func(rest []byte) int { return run(rest, wordChars, 35, false) }}, // Google
	{"eyJ", jwt},
	{"-----BEGIN", pem},
	{"ABIA", aws},
	{"ACCA", aws},
	{"ya29.", func(rest []byte) int { return run(rest, wordChars, 20, true) }}, // Google, OAuth
	{"SG.", func(rest []byte) int { return run(rest, dottedChars, 66, true) }}, // SendGrid
	{"hvs.", func(rest []byte) int { return run(rest, wordChars, 24, true) }},  // Vault
	{"hvb.", func(rest []byte) int { return run(rest, wordChars, 24, true) }},
	{"dp.pt.", func(rest []byte) int { return run(rest, alnumChars, 40, true) }}, // Doppler
	{"ATATT3", func(rest []byte) int { return run(rest, base64URLChars, 100, true) }},
	{"AGE-SECRET-KEY-1", func(rest []byte) int { return run(rest, alnumChars, 58, true) }},
	{"https://hooks.slack.com/services/T", func(rest []byte) int { return run(rest, base64Chars, 30, true) }},
}, prefixed()...)

// prefixed returns the shapes of keys that are a prefix and at least so many
// letters, digits, - and _, including a digit.
func prefixed() []shape {
	var list []shape
	for _, s := range []struct {
		least    int
		prefixes string
	}{
		{20, "glpat- gldt- glrt- glptt- glft- glsoat- glimt- glagent-"},                              // GitLab
		{20, "sk_live_ sk_test_ rk_live_ rk_test_ whsec_"},                                           // Stripe
		{30, "npm_ hf_ nfp_ dckr_pat_ dckr_oat_ rubygems_ pnu_ bkua_ tfp_ lin_api_ glc_ glsa_"},      // registries and others
		{40, "pypi-AgEIcHlwaS5vcmc dop_v1_ doo_v1_ dor_v1_ sntrys_ sntryu_ sbp_ pul- fo1_ sgp_ r8_"}, // PyPI, DigitalOcean, Sentry …
		{32, "shpat_ shpca_ shppa_ shpss_ dapi pscale_tkn_ pscale_pw_ pscale_oauth_ gsk_ xai- pplx- tvly-"},
		{24, "GOCSPX- NRAK- PMAK- CCIPAT_ sq0atp- sq0csp- xapp- ops_eyJ rdme_ ntn_ LTAI EZAK p8e- HRKU-AA"},
	} {
		for prefix := range strings.FieldsSeq(s.prefixes) {
			least := s.least
			list = append(list, shape{prefix, func(rest []byte) int { return run(rest, wordChars, least, true) }})
		}
	}
	return list
}

// shapesByEnd holds the shapes by the last byte of their prefix, to look for all
// of them in one pass.
var shapesByEnd = func() (table [256][]shape) {
	for _, s := range shapes {
		end := s.prefix[len(s.prefix)-1]
		table[end] = append(table[end], s)
	}
	return table
}()

// anyShape reports whether a text may hold a key, also in the middle of a word.
func anyShape(text []byte) bool {
	for i, c := range text {
		for _, s := range shapesByEnd[c] {
			start := i + 1 - len(s.prefix)
			if start >= 0 && string(text[start:i+1]) == s.prefix && s.match(text[i+1:]) >= 0 {
				return true
			}
		}
	}
	return false
}

// find returns the bounds of the first key of this shape at or after from, or
// -1. It does not begin in the middle of a word.
func (s shape) find(text []byte, from int) (start, end int) {
	prefix := []byte(s.prefix)
	for from < len(text) {
		i := bytes.Index(text[from:], prefix)
		if i < 0 {
			break
		}
		start = from + i
		from = start + len(prefix)
		if midWord(text, start) {
			continue
		}
		if n := s.match(text[from:]); n >= 0 {
			return start, from + n
		}
	}
	return -1, -1
}

// midWord reports whether a letter or digit precedes i that is not the end of an
// escape such as \n or \u003c, as in JSON within text.
func midWord(text []byte, i int) bool {
	if i == 0 || !alphanumeric(text[i-1]) {
		return false
	}
	escape := i >= 2 && text[i-2] == '\\' && bytes.IndexByte([]byte("bfnrt"), text[i-1]) >= 0
	unicode := i >= 6 && text[i-6] == '\\' && text[i-5] == 'u'
	return !escape && !unicode
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

type charset [256]bool

func chars(extra string) *charset {
	var c charset
	for i := range c {
		c[i] = alphanumeric(byte(i)) || bytes.IndexByte([]byte(extra), byte(i)) >= 0
	}
	return &c
}

var (
	alnumChars  = chars("")
	wordChars   = chars("_-")
	slackChars  = chars("-")
	dottedChars = chars("._-")
	// base64URLChars are those of URL-safe base64, padded.
	base64URLChars = chars("-_=")
	base64Chars    = chars("+/=")
	// A PEM block also has line ends, as such or escaped, headers, and what a
	// tool puts before each line.
	pemChars = chars("+/= \t\r\n\\:,-|")
)

func (c *charset) length(s []byte) int {
	n := 0
	for n < len(s) && c[s[n]] {
		n++
	}
	return n
}

// run matches at least so many characters of a set, optionally including a
// digit, which distinguishes keys from hyphenated words.
func run(rest []byte, set *charset, least int, digit bool) int {
	n := set.length(rest)
	if n < least || digit && !bytes.ContainsAny(rest[:n], "0123456789") {
		return -1
	}
	return n
}

func github(rest []byte) int { return run(rest, alnumChars, 30, false) }

// aws matches exactly 16 capitals and digits.
func aws(rest []byte) int {
	n := 0
	for n < len(rest) && (rest[n] >= 'A' && rest[n] <= 'Z' || rest[n] >= '0' && rest[n] <= '9') {
		n++
	}
	if n != 16 || n < len(rest) && alphanumeric(rest[n]) {
		return -1
	}
	return n
}

func slack(rest []byte) int {
	if len(rest) < 2 || bytes.IndexByte([]byte("abeprs"), rest[0]) < 0 || rest[1] != '-' {
		return -1
	}
	n := run(rest[2:], slackChars, 10, true)
	if n < 0 {
		return -1
	}
	return n + 2
}

// jwt matches three dotted parts; the last one may be truncated.
func jwt(rest []byte) int {
	n := 0
	for part := range 3 {
		length := wordChars.length(rest[n:])
		if part < 2 {
			if length < 8 || n+length == len(rest) || rest[n+length] != '.' {
				return -1
			}
			length++
		}
		n += length
	}
	return n
}

// pem matches a private key up to its end line or, if that is missing, as far as
// it looks like one.
func pem(rest []byte) int {
	const label, footer = "PRIVATE KEY-----", "-----END "
	const longestLabel, longestKey, leastLine = 33, 32 << 10, 32
	head := bytes.Index(rest[:min(len(rest), longestLabel+len(label))], []byte(label))
	if head < 0 {
		return -1
	}
	head += len(label)
	body := rest[head:min(len(rest), head+longestKey)]
	n := pemChars.length(body)
	if i := bytes.Index(body, []byte(footer)); i >= 0 {
		if j := bytes.Index(body[i:], []byte(label)); j >= 0 {
			n = i + j + len(label)
		}
	}
	for i := 0; i < n; i++ {
		line := base64Chars.length(body[i:n])
		if line >= leastLine {
			return head + n
		}
		i += line
	}
	return -1
}
