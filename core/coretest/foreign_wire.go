package coretest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// The wire of the foreign toolset: one JSON line per frame, {"kind","id","bytes"},
// and after it that many bytes of payload. The payload of output is raw, that
// of every other kind is JSON. The host speaks call, answer and cancel, the
// child the rest, beginning with hello.

const (
	wireVersion = 1
	maxLine     = 4 << 10  // of a frame's line
	maxPayload  = 16 << 20 // of a frame's payload
	outputChunk = 64 << 10 // what the child puts into one frame of output
)

type frameKind string

const (
	kindHello    frameKind = "hello"    // wireHello
	kindTools    frameKind = "tools"    // []wireTool: the tools from here on
	kindCall     frameKind = "call"     // wireCall; begins the call named by id
	kindCancel   frameKind = "cancel"   // no payload
	kindOutput   frameKind = "output"   // bytes
	kindProgress frameKind = "progress" // core.Progress
	kindAsk      frameKind = "ask"      // wireQuestion
	kindAnswer   frameKind = "answer"   // wireAnswer
	kindResult   frameKind = "result"   // wireResult; ends the call
)

// frame is one message. ID is the call that it belongs to, if any.
type frame struct {
	Kind  frameKind `json:"kind"`
	ID    string    `json:"id,omitempty"`
	Bytes int       `json:"bytes,omitempty"`

	payload []byte
}

type wireHello struct {
	Version int        `json:"version"`
	Name    string     `json:"name"`
	Tools   []wireTool `json:"tools"`
}

type wireTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	ReadOnly    bool            `json:"readOnly,omitempty"`
}

type wireCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type wireQuestion struct {
	Ask     int               `json:"ask"` // tells the questions of a call apart
	Kind    core.QuestionKind `json:"kind"`
	Title   string            `json:"title"`
	Choices []core.Choice     `json:"choices,omitempty"`
}

type wireAnswer struct {
	Ask    int         `json:"ask"`
	Choice core.Choice `json:"choice,omitempty"`
	Reason string      `json:"reason,omitempty"`
	Error  string      `json:"error,omitempty"` // nobody answered
}

type wireResult struct {
	Content    []wirePart      `json:"content"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Code       core.ErrorCode  `json:"code,omitempty"`
}

// wirePart is a text, or with a media type an image.
type wirePart struct {
	Text      string `json:"text,omitempty"`
	MediaType string `json:"mediaType,omitempty"`
	Data      []byte `json:"data,omitempty"`
}

// result turns what came over the wire into core's words.
func (r wireResult) result() core.Result {
	out := core.Result{Structured: r.Structured, Code: r.Code}
	for _, p := range r.Content {
		if p.MediaType != "" {
			out.Content = append(out.Content, model.Image{MediaType: p.MediaType, Bytes: len(p.Data), Data: p.Data})
			continue
		}
		out.Content = append(out.Content, model.Text{Text: p.Text})
	}
	return out
}

// frameReader reads frames that a stranger wrote.
type frameReader struct{ r *bufio.Reader }

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{bufio.NewReaderSize(r, maxLine)}
}

// next returns the next frame, io.EOF after the last, and another error when
// what came is not one; then the stream is lost.
func (r *frameReader) next() (frame, error) {
	line, err := r.r.ReadSlice('\n') // bounded: the buffer holds maxLine
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return frame{}, fmt.Errorf("a frame's line is longer than %d bytes", maxLine)
	case errors.Is(err, io.EOF) && len(line) > 0:
		return frame{}, fmt.Errorf("the stream ends within a frame's line: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return frame{}, err
	}
	var f frame
	if err := json.Unmarshal(line, &f); err != nil {
		return frame{}, fmt.Errorf("%.60q is not a frame: %w", line, err)
	}
	if f.Kind == "" || f.Bytes < 0 || f.Bytes > maxPayload {
		return frame{}, fmt.Errorf("a frame of kind %q announces %d bytes, expected a kind and 0 to %d", f.Kind, f.Bytes, maxPayload)
	}
	if f.Bytes == 0 {
		return f, nil
	}
	f.payload = make([]byte, f.Bytes)
	if _, err := io.ReadFull(r.r, f.payload); err != nil {
		return frame{}, fmt.Errorf("the stream ends within a payload of %d bytes: %w", f.Bytes, io.ErrUnexpectedEOF)
	}
	return f, nil
}

// writeFrame writes a frame. It must not run twice at once on one writer.
func writeFrame(w io.Writer, f frame) error {
	f.Bytes = len(f.payload)
	line, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("frame of kind %q: %w", f.Kind, err)
	}
	if len(line) >= maxLine {
		return fmt.Errorf("a frame's line has %d bytes, at most %d can be sent", len(line), maxLine-1)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return err
	}
	_, err = w.Write(f.payload)
	return err
}

// jsonFrame makes a frame whose payload is v.
func jsonFrame(kind frameKind, id string, v any) (frame, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return frame{}, fmt.Errorf("payload of kind %q: %w", kind, err)
	}
	if len(payload) > maxPayload {
		return frame{}, fmt.Errorf("a payload of kind %q has %d bytes, at most %d can be sent", kind, len(payload), maxPayload)
	}
	return frame{Kind: kind, ID: id, payload: payload}, nil
}

// decodePayload reads a frame's JSON payload.
func decodePayload[T any](f frame) (T, error) {
	var v T
	if err := json.Unmarshal(f.payload, &v); err != nil {
		return v, fmt.Errorf("payload of a frame of kind %q: %w", f.Kind, err)
	}
	return v, nil
}
