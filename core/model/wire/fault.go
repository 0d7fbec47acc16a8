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

// The causes with which an exchange cancels its request.
var (
	errNoFirstByte = errors.New("no response in time")
	errIdle        = errors.New("idle for too long")
	errTooLate     = errors.New("longer than the whole answer may take")
)

// Faults makes the errors of one provider, without its secrets.
type Faults struct {
	info    model.ProviderInfo
	names   Names // dotted keys
	secrets *secrets
	parse   func(status int, body []byte) Fault
}

// NewFaults is for a provider without a [Client].
func NewFaults(info model.ProviderInfo, secrets []string) Faults {
	return Faults{info: info, names: Names{}.of(info.Name), secrets: newSecrets(secrets)}
}

// Wrap returns an error with the code that wraps err.
func (f Faults) Wrap(code model.ErrorCode, message string, err error) *model.Error {
	if message != "" && err != nil {
		message += ": " + err.Error()
	}
	return &model.Error{Code: code, Provider: f.info.Name, Message: f.Clean(message), Err: f.cleanErr(err)}
}

// Ended returns the error of a context that has ended, otherwise nil.
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

// End yields the end of a sequence: err, or the usage and the last delta, unless
// ctx has ended.
func (f Faults) End(ctx context.Context, done model.Delta, err error, yield func(model.Delta, error) bool) {
	if err == nil {
		err = f.Ended(ctx)
	}
	done.Usage = plausible(done.Usage)
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

// connection returns the error of a request without a response.
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
		e := f.Wrap(model.CodeNetwork, fmt.Sprintf("cannot connect securely to %s (is the URL right, is it an https server, is its certificate trusted here?)", f.info.Endpoint), err)
		e.Permanent = true
		return e
	case dial:
		e := f.Wrap(code, fmt.Sprintf("cannot connect to %s (is the server running, and is %s right?)", f.info.Endpoint, f.names.BaseURL), err)
		e.Permanent = refusedLocally(op)
		return e
	}
	return f.Wrap(code, "the request to "+f.info.Endpoint+" failed", err)
}

// isTLS reports whether the server was reached but could not be trusted.
func isTLS(err error) bool {
	var certificate *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &header) || errors.Is(err, http.ErrSchemeMismatch)
}

// refusedLocally reports whether this machine refused the connection: the user
// has to start the server. A remote one may just be restarting.
func refusedLocally(op *net.OpError) bool {
	addr, ok := op.Addr.(*net.TCPAddr)
	return ok && addr.IP.IsLoopback() && errors.Is(op, connectionRefused)
}

// response returns the error that an HTTP status and body stand for. The path is
// that of the request below the base URL.
func (f Faults) response(resp *http.Response, body []byte, method, path string) *model.Error {
	fault := f.read(resp.StatusCode, body)
	e := &model.Error{
		Code:       fault.Classify(resp.StatusCode),
		Provider:   f.info.Name,
		Status:     resp.StatusCode,
		RetryAfter: cmp.Or(retryAfter(resp.Header), fault.RetryAfter),
		RequestID:  f.Clean(requestID(resp.Header)),
		Message:    f.Clean(fault.Message),
		Permanent:  fault.Permanent || resp.StatusCode == http.StatusPaymentRequired,
	}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		e.Code = model.CodeNotConfigured
		e.Message = fmt.Sprintf("%s redirects to another URL: set %s to that (redirects are not followed)", f.info.Endpoint, f.names.BaseURL)
	case resp.StatusCode == http.StatusNotFound && (!fault.Structured || method == http.MethodGet):
		e.Code = model.CodeNotConfigured
		e.Message = fmt.Sprintf("%s has no %s: check %s, which usually ends in a version such as /v1", f.info.Endpoint, path, f.names.BaseURL)
	case e.Code == model.CodeAuthentication:
		e.Message = strings.TrimSuffix(fmt.Sprintf("the server rejected the key of %s: %s", f.names.APIKey, e.Message), ": ")
	case resp.StatusCode == http.StatusPaymentRequired:
		e.Message = strings.TrimSuffix("the service asks for payment: "+e.Message, ": ")
	case e.Message == "":
		e.Message = "the server answered " + http.StatusText(resp.StatusCode)
	}
	return e
}

// event returns the error that an error event in a stream stands for.
func (f Faults) event(data []byte, header http.Header) *model.Error {
	fault := f.read(0, data)
	status, err := strconv.Atoi(fault.Code)
	if err != nil || status < 400 || status > 599 {
		status = 0
	}
	code := fault.Classify(status)
	if code == model.CodeUnknown {
		code = model.CodeNetwork // the server gave up within its answer
	}
	return &model.Error{
		Code: code, Provider: f.info.Name, Status: status, RequestID: f.Clean(requestID(header)),
		RetryAfter: fault.RetryAfter, Permanent: fault.Permanent,
		Message: f.Clean("the answer ended early with an error: " + fault.Message),
	}
}

func (f Faults) read(status int, body []byte) Fault {
	if f.parse == nil {
		return ParseFault(body)
	}
	return f.parse(status, body)
}

// Fault is the content of an error body.
type Fault struct {
	Message, Type, Code string
	RetryAfter          time.Duration   // 0 if the body does not say
	As                  model.ErrorCode // overrides the classification; may be empty
	Structured          bool            // the body is a JSON error, not plain text
	Permanent           bool            // waiting will not help
}

// ParseFault parses the common error bodies: {"error":{…}}, {"error":"…"},
// {"message":…}, {"detail":…} and plain text.
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
			text = "" // a web page does not help here
		}
		return Fault{Message: text, RetryAfter: waitInText(text)}
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
		Message: o.Message, Type: o.Type, Code: code, Structured: true, RetryAfter: waitOf(body, o.Message),
		Permanent: code == "insufficient_quota" || o.Type == "insufficient_quota", // until the account is paid
	}
}

// Classify returns the code by the status, the body's own code, or keywords, in
// this order. An exceeded context comes with many statuses, even 500, and is
// checked first: the same request will never succeed.
func (f Fault) Classify(status int) model.ErrorCode {
	if f.As != "" {
		return f.As
	}
	if status >= 400 && status != http.StatusTooManyRequests &&
		(f.Code == "context_length_exceeded" || CodeOfText(f.Message) == model.CodeContextLength) {
		return model.CodeContextLength
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return model.CodeAuthentication
	case status == http.StatusNotFound:
		return model.CodeModelNotFound
	case status == http.StatusRequestEntityTooLarge:
		return model.CodeContextLength
	case status == http.StatusTooManyRequests, status == http.StatusPaymentRequired:
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

// bodyCodes are the error codes and types that servers send in the body.
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

// keyword is a pattern in the text of an error, and its code.
type keyword struct {
	words *regexp.Regexp
	code  model.ErrorCode
}

// keywords are compiled when first needed, not when the program starts. The
// patterns end at word boundaries: "204290 tokens" is not a 429.
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

// CodeOfText returns the code by keywords in the text of an error.
func CodeOfText(text string) model.ErrorCode {
	for _, k := range keywords() {
		if k.words.MatchString(text) {
			return k.code
		}
	}
	return model.CodeUnknown
}

// retryAfter returns how long the server asks to wait: milliseconds, seconds or
// a date, which is relative to the server's own clock.
func retryAfter(h http.Header) time.Duration {
	const maxSeconds = 1e6 // no server means more
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms/1000, maxSeconds) * float64(time.Second))
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
		return time.Duration(min(s, maxSeconds) * float64(time.Second))
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

// Clean makes untrusted text safe for an error message: one line of limited
// length, without control characters and secrets.
func (f Faults) Clean(text string) string {
	return Clip(f.secrets.hide(text), 600)
}

// cleanErr returns err, or only its cleaned text if that contains a secret.
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
