package oauth

import (
	"strings"
)

// challenge is a Bearer challenge of a server (RFC 6750, RFC 9728).
type challenge struct {
	metadata string   // resource_metadata: URL of the server's metadata
	scopes   []string // required ones
	err      string   // the error code
	more     bool     // the token has insufficient scopes
}

// bearerChallenge parses the Bearer challenge of WWW-Authenticate headers. It
// ignores invalid parts; the first of several values counts.
func bearerChallenge(headers []string) challenge {
	var ch challenge
	for _, h := range headers {
		for scheme, params := range challenges(h) {
			if !strings.EqualFold(scheme, "Bearer") {
				continue
			}
			if ch.metadata == "" {
				ch.metadata = params["resource_metadata"]
			}
			if len(ch.scopes) == 0 {
				ch.scopes = strings.Fields(params["scope"])
			}
			if ch.err == "" {
				ch.err = params["error"]
			}
		}
	}
	return ch
}

// challenges parses a header (RFC 9110, section 11.6.1): schemes, each with
// parameters "name=token" or `name="quoted"`, separated by commas. A token68
// instead of parameters is skipped.
func challenges(header string) func(yield func(scheme string, params map[string]string) bool) {
	return func(yield func(string, map[string]string) bool) {
		p := headerParser{rest: header}
		scheme, params := "", map[string]string{}
		for {
			p.skip(" \t,")
			word := p.token()
			if word == "" {
				if p.rest == "" {
					break
				}
				p.rest = p.rest[1:] // invalid
				continue
			}
			p.skip(" \t")
			if !strings.HasPrefix(p.rest, "=") || scheme == "" {
				if scheme != "" && !yield(scheme, params) {
					return
				}
				scheme, params = word, map[string]string{}
				continue
			}
			p.rest = p.rest[1:]
			p.skip(" \t")
			name := strings.ToLower(word)
			if _, twice := params[name]; !twice {
				params[name] = p.value()
			} else {
				p.value()
			}
		}
		if scheme != "" {
			yield(scheme, params)
		}
	}
}

// headerParser parses a header from the front.
type headerParser struct{ rest string }

func (p *headerParser) skip(chars string) { p.rest = strings.TrimLeft(p.rest, chars) }

// token consumes a token (RFC 9110, section 5.6.2), "" if there is none.
func (p *headerParser) token() string {
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !isTokenChar(r) })
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

func isTokenChar(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// value consumes a quoted string, or everything up to the next comma or blank:
// many servers do not quote URLs.
func (p *headerParser) value() string {
	if !strings.HasPrefix(p.rest, `"`) {
		end := strings.IndexAny(p.rest, ", \t")
		if end < 0 {
			end = len(p.rest)
		}
		v := p.rest[:end]
		p.rest = p.rest[end:]
		return v
	}
	var v strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return v.String()
		case c == '\\' && i+1 < len(p.rest):
			i++
			v.WriteByte(p.rest[i])
		default:
			v.WriteByte(c)
		}
	}
	p.rest = "" // the closing quote is missing
	return v.String()
}
