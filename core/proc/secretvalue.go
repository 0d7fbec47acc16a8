package proc

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/redact"
)

// secretValue reports whether a variable's value contains a credential: a
// password or token in a URL or a connection string, an address that is a secret
// itself such as a webhook, a cookie, or a key of a known shape. What leads to
// this machine only is none, such as the database of a test.
func secretValue(value string) bool {
	if len(value) < 6 {
		return false
	}
	if !strings.ContainsAny(value, ":= \t\n\f\r") { // none of the forms below
		return keyShaped(value)
	}
	p := patterns()
	if p.header.MatchString(value) || p.json.MatchString(value) || p.cookie.MatchString(value) {
		return true
	}
	if list := addresses(value); len(list) > 0 {
		return slices.ContainsFunc(list, address.secret) || keyShaped(value)
	}
	return (p.param.MatchString(value) || p.dsn.MatchString(value)) && !localAddress(value) || keyShaped(value)
}

func keyShaped(value string) bool {
	_, found := keyShapes().Text([]byte(value))
	return found
}

var keyShapes = sync.OnceValue(func() *redact.Redactor { return redact.New(nil) })

// valuePatterns are the forms of credentials in text.
type valuePatterns struct {
	scheme, userinfo, param, hostParam, dsn, header, json, cookie, webhook, port *regexp.Regexp
}

// secretParam is the name of a parameter with a credential.
const secretParam = `(?:[\w.-]*(?:passw|password|passwd|passphrase|secret|token|signature|credential|apikey|api[-_]key|authkey` +
	`|accountkey|account[-_]key|accesskey|access[-_]key(?:[-_]id)?|sharedaccesskey|secretkey|private[-_]?key)` +
	`|(?:[\w.-]*[._-])?(?:pass|pwd|sig|auth|code|key|password))`

var patterns = sync.OnceValue(func() *valuePatterns {
	re := regexp.MustCompile
	return &valuePatterns{
		scheme: re(`(?i)[a-z][a-z0-9+.-]*://`),
		// After the scheme: user:password@. A password may contain unescaped / and #.
		userinfo: re(`^([^\s/?#:@]*)(:[^\s@]*(?:@[^\s/@]*)*)?@`),
		param:    re(`(?i)(?:^|[;&?,\s/:"'-])` + secretParam + `\s*=\s*[^;&\s]`),
		// Where key=value connection strings lead to.
		hostParam: re(`(?i)(?:^|[;&?\s])(?:host|hostaddr|server|data source|addr|address|endpoint|accountendpoint)\s*=\s*(?:tcp:)?([^;&\s]*)`),
		dsn:       re(`^[^\s:/@()]+:[^\s@]*@(?:[a-z0-9]+\(([^)]*)\))?/|:thin:[^\s/@]+/[^\s@]+@(?://)?([^/\s]*)`),
		header:    re(`(?i)\b(?:authorization|cookie|x-api-key|x-auth-token|private-token)\s*[:=]\s*\S|\b(?:bearer|basic)\s+[a-z0-9+/=._~-]{12,}`),
		json:      re(`(?i)"[\w.-]*(?:auth|token|password|passwd|secret|private_?key|api_?key|access_?key|secret_?key|credentials?)"\s*:\s*"[^"]+"`),
		cookie:    re(`(?i)(?:^|[;,\s])[\w.-]*(?:session|sessid|sessionid|[._-]sid|csrf[\w-]*|_auth)=[\w%.+/:-]{8,}`),
		webhook:   re(`(?i)^(?:[\w.-]+\.)?(?:hooks?\.[\w.-]+|webhook[\w.-]*\.[\w.-]+)/.|^[^/]*(?:discord|discordapp)\.com/api/webhooks/|/(?:web)?hooks?/.{8,}|^api\.telegram\.org/bot|ifttt\.com/.*/key/|/open-apis/bot/|^[^/]*\.logic\.azure\.com`),
		port:      re(`^:[0-9]{1,5}/`),
	}
})

// address is a URL. Unlike [url.Parse], it allows for several hosts and for
// passwords with unescaped characters.
type address struct {
	scheme, user, password string
	hosts                  string // separated by commas
	tail                   string // what follows them
}

// addresses returns the URLs in a text, such as a list separated by commas.
func addresses(text string) []address {
	p := patterns()
	var list []address
	starts := p.scheme.FindAllStringIndex(text, -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		rest := text[at[1]:end]
		if space := strings.IndexAny(rest, " \t\r\n|\"'<>"); space >= 0 {
			rest = rest[:space]
		}
		a := address{scheme: strings.ToLower(text[at[0] : at[1]-len("://")]), hosts: strings.TrimRight(rest, ",;")}
		if m := p.userinfo.FindStringSubmatch(a.hosts); m != nil && !p.port.MatchString(m[2]) {
			a.user, a.password, a.hosts = m[1], strings.TrimPrefix(m[2], ":"), a.hosts[len(m[0]):]
		}
		if i := strings.IndexAny(a.hosts, "/?#;"); i >= 0 {
			a.hosts, a.tail = a.hosts[:i], a.hosts[i:]
		}
		list = append(list, a)
	}
	return list
}

// secret reports whether the URL contains a credential for another machine.
func (a address) secret() bool {
	if a.local() {
		return false
	}
	web := strings.HasSuffix(a.scheme, "http") || strings.HasSuffix(a.scheme, "https")
	return a.password != "" || a.user != "" && web || patterns().param.MatchString(a.tail) || patterns().webhook.MatchString(a.hosts+a.tail)
}

// local reports whether all hosts are this machine. Parameters may name others,
// and a URL without a host is one of a Unix socket.
func (a address) local() bool {
	if m := patterns().hostParam.FindStringSubmatch(a.tail); m != nil {
		if host, err := url.QueryUnescape(m[1]); err != nil || !strings.HasPrefix(host, "/") && !isLoopback(host) {
			return false
		}
	}
	for host := range strings.SplitSeq(a.hosts, ",") {
		if host != "" && !isLoopback(host) {
			return false
		}
	}
	return true
}

// isLocal reports whether the matched host is this machine or a Unix socket.
func isLocal(match []string) bool {
	return match != nil && (strings.HasPrefix(match[1], "/") || isLoopback(match[1]))
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(host string) bool {
	host = strings.TrimSpace(host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if name, _, found := strings.Cut(host, ","); found && !strings.Contains(host, "[") { // "host,port" of SQL Server
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "(localdb)" || host == "0.0.0.0" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// localAddress reports whether a value is a URL or a connection string, or a list
// of URLs, that only leads to this machine.
func localAddress(value string) bool {
	p := patterns()
	if list := addresses(value); len(list) > 0 {
		return !keyShaped(value) && !slices.ContainsFunc(list, func(a address) bool { return !a.local() })
	}
	if m := p.hostParam.FindStringSubmatch(value); m != nil {
		return isLocal(m)
	}
	m := p.dsn.FindStringSubmatch(value)
	return m != nil && isLoopback(m[1]+m[2])
}
