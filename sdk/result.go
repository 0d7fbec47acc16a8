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

// Result is a result with several parts. Tools that return only text return a
// string, those that return only data any value that encoding/json can encode:
//
//	return sdk.Result{
//		Text:       "3 open tickets",
//		Structured: tickets,
//		Images:     []sdk.Image{{MediaType: "image/png", Data: chart}},
//	}, nil
type Result struct {
	Text       string  // for the model
	Images     []Image // for the model
	Structured any     // the same as data, for programs: anything that encoding/json can encode
}

// Image is an image in a [Result].
type Image struct {
	MediaType string // "image/png" …
	Data      []byte
}

// Code classifies an error, so that the model and programs know whether to change
// the arguments, wait, or give up.
type Code string

// The codes.
const (
	Validation  Code = "VALIDATION_ERROR"  // the arguments are invalid
	IO          Code = "IO_ERROR"          // reading, writing or the network failed
	Config      Code = "CONFIG_ERROR"      // the user must configure something first, such as a key
	Permission  Code = "PERMISSION_DENIED" // not allowed
	RateLimited Code = "RATE_LIMITED"      // try again later
	NotFound    Code = "NOT_FOUND"         // what the arguments name does not exist
	TimedOut    Code = "TIMEOUT"           // also of context.DeadlineExceeded
	Cancelled   Code = "CANCELLED"         // also of context.Canceled
	Unknown     Code = "UNKNOWN"           // of all errors without a code
)

// Error is an error with a code. [Errorf] returns one.
type Error struct {
	Code Code
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its code.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error with a code. The model reads its text, so say what is
// wrong and what to do next:
//
//	return "", sdk.Errorf(sdk.Config, "no API key: set WEATHER_KEY")
func Errorf(code Code, format string, args ...any) error {
	return &Error{code, fmt.Errorf(format, args...)}
}

// failure returns the result for an error.
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

// valid replaces invalid UTF-8, which protobuf does not transmit.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// maxFrame is the size in bytes above which results are split into parts.
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

// sendPart sends data of any length as parts.
func (c *conversation) sendPart(kind toolproto.Part_Kind, mediaType string, data []byte) error {
	c.parts.Lock() // the frames of one part must not be interleaved
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
