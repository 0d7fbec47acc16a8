package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrorCode classifies the errors of providers.
type ErrorCode string

// The error codes.
const (
	CodeNotConfigured   ErrorCode = "PROVIDER_NOT_CONFIGURED" // a key or an endpoint is missing
	CodeNotSupported    ErrorCode = "PROVIDER_NOT_SUPPORTED"  // unknown provider, or it cannot do this
	CodeAuthentication  ErrorCode = "AUTHENTICATION_ERROR"
	CodeRateLimited     ErrorCode = "RATE_LIMITED"
	CodeModelNotFound   ErrorCode = "MODEL_NOT_FOUND"
	CodeContextLength   ErrorCode = "CONTEXT_LENGTH_EXCEEDED"
	CodeInvalidRequest  ErrorCode = "INVALID_REQUEST"
	CodeNetwork         ErrorCode = "NETWORK_ERROR" // no connection, a lost one, 5xx, overload
	CodeTimeout         ErrorCode = "TIMEOUT"
	CodeInvalidResponse ErrorCode = "INVALID_RESPONSE" // the response is malformed or incomplete
	CodeUnknown         ErrorCode = "UNKNOWN"
)

// Error is the error of a provider. It never contains a key or a whole request.
type Error struct {
	Code       ErrorCode
	Provider   string
	Status     int           // HTTP status, 0 if there was none
	RetryAfter time.Duration // how long the provider asks to wait, 0 if it does not say
	RequestID  string
	Message    string // for users: what happened and, if known, what to do
	Err        error
	// Permanent means that waiting will not help, whatever the code: the user
	// has to act first, such as start a local server.
	Permanent bool
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Provider != "" {
		b.WriteString(e.Provider)
		b.WriteString(": ")
	}
	switch {
	case e.Message != "":
		b.WriteString(e.Message)
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	default:
		b.WriteString(string(e.Code))
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " [request %s]", e.RequestID)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later. A cancelled
// request is never retryable, nor is a permanent failure.
func (e *Error) Retryable() bool {
	if e.Permanent || errors.Is(e.Err, context.Canceled) {
		return false
	}
	switch e.Code {
	case CodeRateLimited, CodeNetwork, CodeTimeout, CodeInvalidResponse:
		return true
	}
	return false
}

// AsError returns err as an *Error, wrapping it with CodeUnknown if there is
// none in its chain (CodeTimeout for a passed deadline). It returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	code := CodeUnknown
	if errors.Is(err, context.DeadlineExceeded) {
		code = CodeTimeout
	}
	return &Error{Code: code, Err: err}
}
