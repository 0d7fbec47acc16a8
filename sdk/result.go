package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Result is what a tool may return if it is more than text or data.
type Result struct {
	Text       string
	Images     []Image
	Structured any // the same as data, for programs; what encoding/json can encode
}

// Image is an image in a result.
type Image struct {
	MediaType string // "image/png" …
	Data      []byte
}

// Code classifies an error for the model.
type Code string

// The codes.
const (
	Validation  Code = "VALIDATION_ERROR" // the arguments are wrong
	IO          Code = "IO_ERROR"
	Config      Code = "CONFIG_ERROR" // something must be set up first
	Permission  Code = "PERMISSION_DENIED"
	RateLimited Code = "RATE_LIMITED"
	NotFound    Code = "NOT_FOUND"
	TimedOut    Code = "TIMEOUT"
	Cancelled   Code = "CANCELLED"
	Unknown     Code = "UNKNOWN"
)

// Error is an error with a code.
type Error struct {
	Code Code
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its code.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error with a code. It should say what is wrong and what to
// do next: the model reads it.
func Errorf(code Code, format string, args ...any) error {
	return &Error{code, fmt.Errorf(format, args...)}
}

// failure is the frame of an error.
func failure(err error) *toolproto.Result {
	var coded *Error
	code := Unknown
	switch {
	case errors.As(err, &coded):
		code = coded.Code
	case errors.Is(err, context.Canceled):
		code = Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		code = TimedOut
	}
	return &toolproto.Result{Code: string(code), Text: valid(err.Error())}
}

// valid makes text that may travel.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// maxFrame is the size in bytes from which on a result goes in parts.
const maxFrame = 1 << 20

// sendResult sends what a tool returned.
func (c *conversation) sendResult(out any) error {
	var res Result
	switch out := out.(type) {
	case nil:
		res.Text = "done"
	case string:
		res.Text = out
	case []byte:
		res.Text = string(out)
	case Result:
		res = out
	case *Result:
		if out != nil {
			res = *out
		}
	case error:
		return c.send(frame(failure(out)))
	default:
		if t := reflect.TypeOf(out); t.Kind() == reflect.Struct && t.NumField() == 0 {
			res.Text = "done"
		} else {
			res.Structured = out
		}
	}
	last := &toolproto.Result{}
	if res.Structured != nil {
		data, err := json.Marshal(res.Structured)
		if err != nil {
			return c.send(frame(failure(fmt.Errorf("the result cannot be encoded: %w", err))))
		}
		if len(data) > maxFrame {
			if err := c.sendPart(toolproto.Part_STRUCTURED, "", data); err != nil {
				return err
			}
		} else {
			last.Structured = data
		}
	}
	for _, img := range res.Images {
		if err := c.sendPart(toolproto.Part_IMAGE, img.MediaType, img.Data); err != nil {
			return err
		}
	}
	text := valid(res.Text)
	if len(text) > maxFrame {
		if err := c.sendPart(toolproto.Part_TEXT, "", []byte(text)); err != nil {
			return err
		}
	} else {
		last.Text = text
	}
	return c.send(frame(last))
}

// sendPart sends data of any length.
func (c *conversation) sendPart(kind toolproto.Part_Kind, mediaType string, data []byte) error {
	c.parts.Lock() // the frames of one part follow each other
	defer c.parts.Unlock()
	for {
		n := min(len(data), maxFrame)
		p := &toolproto.Part{Kind: kind, MediaType: mediaType, Data: data[:n], More: n < len(data)}
		if err := c.send(&toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Part{Part: p}}); err != nil {
			return err
		}
		if data = data[n:]; len(data) == 0 {
			return nil
		}
	}
}

func frame(r *toolproto.Result) *toolproto.PluginFrame {
	return &toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Result{Result: r}}
}
