package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/seed-009c0928/agent/core/model"
)

// The causes with which an exchange ends its own request.
var (
	errNoFirstByte = errors.New("the answer did not begin in time")
	errIdle        = errors.New("nothing arrived for too long")
)

// Faults makes the *model.Errors of one provider. None of them holds one of
// its secrets.
type Faults struct {
	info    model.ProviderInfo
	names   Names // dotted keys
	secrets *secrets
	parse   func(status int, body []byte) Fault
}

// NewFaults is for a provider that has no [Client].
func NewFaults(info model.ProviderInfo, hidden []string) Faults {
	return Faults{info: info, names: Names{}.of(info.Name), secrets: newSecrets(hidden)}
}

// Wrap returns an error of that code which wraps err.
func (f Faults) Wrap(code model.ErrorCode, message string, err error) *model.Error {
	if message != "" && err != nil {
		message += ": " + err.Error()
	}
	return &model.Error{Code: code, Provider: f.info.Name, Message: f.Clean(message), Err: f.cleanErr(err)}
}

// Ended returns the error of a context that has ended, nil for any other.
func (f Faults) Ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	code := model.CodeUnknown
	if errors.Is(err, context.DeadlineExceeded) {
		code = model.CodeTimeout
	}
	return &model.Error{Code: code, Provider: f.info.Name, Err: err}
}

// End yields the end of a sequence: err, or the usage and the last delta,
// unless ctx ends before that.
func (f Faults) End(ctx context.Context, done model.Delta, err error, yield func(model.Delta, error) bool) {
	if err == nil {
		err = f.Ended(ctx)
	}
	if err == nil && done.Usage != (model.Usage{}) {
		if !yield(model.Delta{Kind: model.DeltaUsage, Usage: done.Usage}, nil) {
			return
		}
		err = f.Ended(ctx)
	}
	if err != nil {
		done = model.Delta{}
	}
	yield(done, err)
}

// connection returns the error of a request that brought no answer.
func (f Faults) connection(err error) *model.Error {
	var op *net.OpError
	dial := errors.As(err, &op) && op.Op == "dial"
	var timed interface{ Timeout() bool }
	code := model.CodeNetwork
	if errors.As(err, &timed) && timed.Timeout() {
		code = model.CodeTimeout
	}
	switch {
	case op != nil && op.Op == "proxyconnect":
		return f.Wrap(code, fmt.Sprintf("cannot connect to the proxy for %s (see the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY)", f.info.Endpoint), err)
	case isTLS(err):
		e := f.Wrap(model.CodeNetwork, fmt.Sprintf("no trusted connection to %s (is it the right address, does it speak https, does this machine know who signed its certificate?)", f.info.Endpoint), err)
		e.Permanent = true
		return e
	case dial:
		e := f.Wrap(code, fmt.Sprintf("cannot connect to %s (is the server running, and is %s right?)", f.info.Endpoint, f.names.BaseURL), err)
		e.Permanent = refusedHere(op)
		return e
	}
	return f.Wrap(code, "the request to "+f.info.Endpoint+" failed", err)
}

// isTLS reports whether the other side was reached and could not be trusted.
func isTLS(err error) bool {
	var certificate *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &header) || errors.Is(err, http.ErrSchemeMismatch)
}

// refusedHere reports whether this machine itself refused the connection: no
// server listens there until somebody starts it. A refusal from elsewhere may
// be a server that is just being replaced.
func refusedHere(op *net.OpError) bool {
	addr, ok := op.Addr.(*net.TCPAddr)
	return ok && addr.IP.IsLoopback() && errors.Is(op, connectionRefused)
}

// response returns the error that an HTTP status and body stand for. The path
// is what was asked for below the base URL, and how.
func (f Faults) response(resp *http.Response, body []byte, method, path string) *model.Error {
	said := f.read(resp.StatusCode, body)
	e := &model.Error{
		Code:       said.Classify(resp.StatusCode),
		Provider:   f.info.Name,
		Status:     resp.StatusCode,
		RetryAfter: cmp.Or(retryAfter(resp.Header), said.RetryAfter),
		RequestID:  f.Clean(requestID(resp.Header)),
		Message:    f.Clean(said.Message),
		Permanent:  said.Permanent,
	}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		e.Code = model.CodeNotConfigured
		e.Message = fmt.Sprintf("%s redirects to another address, which is not followed: set %s to the final one", f.info.Endpoint, f.names.BaseURL)
	case resp.StatusCode == http.StatusNotFound && (!said.Structured || method == http.MethodGet):
		e.Code = model.CodeNotConfigured
		e.Message = fmt.Sprintf("%s has no %s: check %s, which mostly ends in a version such as /v1", f.info.Endpoint, path, f.names.BaseURL)
	case e.Code == model.CodeAuthentication:
		e.Message = strings.TrimSuffix(fmt.Sprintf("the server refuses the key of %s: %s", f.names.APIKey, e.Message), ": ")
	case e.Message == "":
		e.Message = "the server answered " + http.StatusText(resp.StatusCode)
	}
	return e
}

// event returns the error that an error event in a stream stands for.
func (f Faults) event(data []byte, header http.Header) *model.Error {
	said := f.read(0, data)
	status, err := strconv.Atoi(said.Code)
	if err != nil || status < 400 || status > 599 {
		status = 0
	}
	code := said.Classify(status)
	if code == model.CodeUnknown {
		code = model.CodeNetwork // the server gave up on an answer that it had begun
	}
	return &model.Error{
		Code: code, Provider: f.info.Name, Status: status, RequestID: f.Clean(requestID(header)),
		RetryAfter: said.RetryAfter, Permanent: said.Permanent,
		Message: f.Clean("the answer broke off with an error: " + said.Message),
	}
}

func (f Faults) read(status int, body []byte) Fault {
	if f.parse == nil {
		return ParseFault(body)
	}
	return f.parse(status, body)
}

// Fault is what an error body says.
type Fault struct {
	Message, Type, Code string
	RetryAfter          time.Duration   // the body's own wish, 0 without one
	As                  model.ErrorCode // how to classify it, whatever status and words say; may be empty
	Structured          bool            // the body was a JSON error, not a page of text
	Permanent           bool            // waiting will not help
}

// ParseFault reads the error bodies that are about: {"error":{…}},
// {"error":"…"}, {"message":…}, {"detail":…} and plain text.
func ParseFault(body []byte) Fault {
	type object struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	var top struct {
		object
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &top) != nil {
		text := strings.TrimSpace(string(body))
		if strings.HasPrefix(text, "<") {
			text = "" // a web page tells a person nothing here
		}
		return Fault{Message: text}
	}
	o := top.object
	var text string
	switch {
	case json.Unmarshal(top.Error, &text) == nil && text != "":
		o.Message = text
	case len(top.Error) > 0:
		var inner object
		if json.Unmarshal(top.Error, &inner) == nil {
			o = inner
		}
	case o.Message == "" && len(top.Detail) > 0:
		if json.Unmarshal(top.Detail, &o.Message) != nil {
			o.Message = string(top.Detail)
		}
	}
	code := strings.Trim(string(o.Code), `"`)
	return Fault{
		Message: o.Message, Type: o.Type, Code: code, Structured: true,
		Permanent: code == "insufficient_quota" || o.Type == "insufficient_quota", // until somebody pays
	}
}

// Classify tells the code by status, then by the body's own code, then by keywords.
// An exceeded context comes under many statuses, even 500, and is looked for
// first: the same request will never succeed.
func (f Fault) Classify(status int) model.ErrorCode {
	if f.As != "" {
		return f.As
	}
	if status >= 400 && status != http.StatusTooManyRequests &&
		(f.Code == "context_length_exceeded" || CodeOfText(f.Message) == model.CodeContextLength) {
		return model.CodeContextLength
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired, status == http.StatusProxyAuthRequired:
		return model.CodeAuthentication
	case status == http.StatusNotFound:
		return model.CodeModelNotFound
	case status == http.StatusRequestEntityTooLarge:
		return model.CodeContextLength
	case status == http.StatusTooManyRequests:
		return model.CodeRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return model.CodeTimeout
	case status >= 500:
		return model.CodeNetwork
	}
	for _, c := range []string{f.Code, f.Type} {
		if code, ok := bodyCodes[c]; ok {
			return code
		}
	}
	if status >= 400 {
		return model.CodeInvalidRequest
	}
	return CodeOfText(f.Message)
}

// bodyCodes are error codes and types that servers name in the body.
var bodyCodes = map[string]model.ErrorCode{
	"context_length_exceeded": model.CodeContextLength,
	"invalid_api_key":         model.CodeAuthentication,
	"authentication_error":    model.CodeAuthentication,
	"permission_error":        model.CodeAuthentication,
	"model_not_found":         model.CodeModelNotFound,
	"unknown_model":           model.CodeModelNotFound, // of GitHub Models
	"rate_limit_exceeded":     model.CodeRateLimited,
	"rate_limit_error":        model.CodeRateLimited,
	"insufficient_quota":      model.CodeRateLimited,
	"server_error":            model.CodeNetwork,
	"internal_server_error":   model.CodeNetwork,
	"overloaded_error":        model.CodeNetwork,
	"service_unavailable":     model.CodeNetwork,
	"timeout":                 model.CodeTimeout,
	"invalid_request_error":   model.CodeInvalidRequest,
}

// keyword is a pattern in an error's text and what it tells.
type keyword struct {
	words *regexp.Regexp
	code  model.ErrorCode
}

// keywords are compiled when the first error needs them, not at every start of
// the program. The patterns end at word boundaries: "204290 tokens" is no 429.
var keywords = sync.OnceValue(func() []keyword {
	compile := func(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + words + `)\b`) }
	return []keyword{
		{compile(`maximum context length|context (length|window|size) (is )?exceeded|` +
			`(exceed(s|ed|ing)?|larger than|longer than) the (available |model's |maximum )*context|` +
			`(prompt|input|request) is too (long|large)|too many (input )?tokens|token count[ (0-9)]* exceeds`), model.CodeContextLength},
		{compile(`rate limit(ed|s)?|too many requests|quota exceeded`), model.CodeRateLimited},
		{compile(`unauthori[sz]ed|invalid api key|incorrect api key|authentication|permission denied`), model.CodeAuthentication},
		{compile(`model\b.*\b(not found|does not exist|is unknown)`), model.CodeModelNotFound},
		{compile(`timeout|timed out|deadline exceeded`), model.CodeTimeout},
		{compile(`overloaded|unavailable|connection (refused|reset)|no such host|unexpected EOF|network error`), model.CodeNetwork},
		{compile(`bad request|invalid request`), model.CodeInvalidRequest},
	}
})

// CodeOfText is the last resort: what an error's words tell.
func CodeOfText(text string) model.ErrorCode {
	for _, k := range keywords() {
		if k.words.MatchString(text) {
			return k.code
		}
	}
	return model.CodeUnknown
}

// retryAfter reads how long the server wants us to wait: milliseconds, seconds
// or a date. A date is taken relative to the server's own clock.
func retryAfter(h http.Header) time.Duration {
	const most = 1e6 // seconds; no server means more
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms/1000, most) * float64(time.Second))
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
		return time.Duration(min(s, most) * float64(time.Second))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(at.Sub(now), 0)
}

func requestID(h http.Header) string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Ms-Request-Id"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// Clean makes foreign text fit for an error message: on one line, without
// control characters and secrets, and of bounded length.
func (f Faults) Clean(text string) string {
	return Clip(f.secrets.hide(text), 600)
}

// cleanErr returns err, or only its text if that holds a secret.
func (f Faults) cleanErr(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); f.secrets.hide(text) != text {
		return errors.New(f.Clean(text))
	}
	return err
}

// Clip returns text on one line, without control characters, cut to limit bytes.
func Clip(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
