package modeltest

import (
	"fmt"
	"net/http"
	"net/url"
)

// API is a protocol that a [Server] speaks.
type API uint8

// The APIs, with their paths below the base URL of [Server.Start].
const (
	// ChatCompletions is OpenAI's older API, which many services support:
	// POST chat/completions, GET models.
	ChatCompletions API = iota
	// Ollama is ChatCompletions with GET /api/tags beside /v1.
	Ollama
	// Azure is ChatCompletions of Azure OpenAI: POST
	// openai/deployments/NAME/chat/completions?api-version=…, with the key in the
	// header api-key (or a bearer token), and the results of content filters. The
	// base URL is that of the resource.
	Azure
	// Responses is OpenAI's API: POST responses, GET models.
	Responses
	// Messages is Anthropic's API: POST messages, GET models.
	Messages
	// Gemini is Google's Gemini Developer API: POST
	// models/NAME:generateContent and models/NAME:streamGenerateContent, GET
	// models.
	Gemini
	// Vertex is Gemini below projects/P/locations/L/publishers/google with a bearer
	// token, or below publishers/google with a key; GET publishers/google/models
	// lists.
	Vertex
)

var apiNames = [...]string{"ChatCompletions", "Ollama", "Azure", "Responses", "Messages", "Gemini", "Vertex"}

// String returns the name of the constant.
func (a API) String() string {
	if int(a) < len(apiNames) {
		return apiNames[a]
	}
	return fmt.Sprintf("API(%d)", a)
}

// base returns the path of the base URL.
func (a API) base() string {
	switch a {
	case Azure:
		return ""
	case Gemini:
		return "/v1beta"
	}
	return "/v1"
}

// protocol is the wire format of an API.
type protocol interface {
	route(r *http.Request) route
	credential(h http.Header) string
	// name returns the id of answer n, and sets that of the request in h.
	name(h http.Header, n int) string
	// read decodes the body into req and returns why the service would reject it.
	// The error is for invalid JSON.
	read(s *Server, req *Request) (*Fault, error)
	frames(a *answer) []string // the streamed answer
	whole(a *answer) string    // the answer as a single JSON value
	list(models []string, path string, query url.Values) any
	// fault returns the status and the body of an error.
	fault(f *Fault) (status int, body string)
	errorFrame(f *Fault) string // an error within a stream
}

// answer is a turn that answers a request.
type answer struct {
	*Turn
	server *Server
	req    *Request
	id     string
	model  string
}

// ErrorFrame returns the frame with which the API reports an error within a
// stream.
func (a API) ErrorFrame(f Fault) string { return a.protocol().errorFrame(&f) }

func (a API) protocol() protocol {
	switch a {
	case Gemini, Vertex:
		return gemini{vertex: a == Vertex}
	case Messages:
		return messages{}
	case Responses:
		return responses{}
	}
	return chat{api: a}
}
