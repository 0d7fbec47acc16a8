package modeltest

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// cutTurn is a short answer to cut off.
func cutTurn() Turn {
	return Turn{Reasoning: []string{"Hm."}, Text: []string{"Reading 🙂."}, Calls: []Call{{ID: "call_1", Name: "read_file", Args: []string{`{"path":"a"}`}}}}
}

// cutBody answers with a stream, followed by EOF or an error.
type cutBody struct {
	stream string
	broken bool
	rest   http.RoundTripper // for requests other than POST
}

// RoundTrip implements [http.RoundTripper].
func (c *cutBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost {
		return c.rest.RoundTrip(r)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	var body io.Reader = strings.NewReader(c.stream)
	if c.broken {
		body = io.MultiReader(body, failing{})
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body), Request: r,
	}, nil
}

type failing struct{}

// Read implements [io.Reader].
func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// checkCutAnywhere cuts a stream off after each byte. Either the complete answer
// arrives, or there is an error.
func (r *rig) checkCutAnywhere() {
	turn := cutTurn()
	r.start(turn)
	whole := r.must(hello())
	stream := strings.Join(turn.streamed(r.api, r.traits.model), "")
	body := &cutBody{rest: r.endpoint.Transport}
	at := r.endpoint
	at.Transport = body
	r.provider = r.factory(r.tb, at)
	for cut := range len(stream) {
		body.stream, body.broken = stream[:cut], cut%2 == 1
		resp, err := r.complete(r.ctx, hello())
		r.checkCut(cut, len(stream), whole, resp, err)
	}
}

// checkCut checks the result of a stream that was cut off.
func (r *rig) checkCut(cut, size int, whole, resp *model.Response, err error) {
	if err != nil {
		if e := r.checkError(resp, err); e.Code != model.CodeNetwork || !errors.Is(err, io.ErrUnexpectedEOF) {
			r.Fatalf("cut after %d of %d bytes: code %s, want %s with io.ErrUnexpectedEOF: %v", cut, size, e.Code, model.CodeNetwork, err)
		}
		return
	}
	if !reflect.DeepEqual(shown(resp.Parts), shown(whole.Parts)) || resp.Stop != whole.Stop {
		r.Fatalf("cut after %d of %d bytes: no error, but the response %+v", cut, size, resp)
	}
}

// checkCutOverHTTP cuts streams off over a real connection.
func (r *rig) checkCutOverHTTP() {
	turn := cutTurn()
	size := len(strings.Join(turn.streamed(r.api, r.traits.model), ""))
	r.start(turn)
	whole := r.must(hello())
	var cut int
	var how Ending
	r.use(NewFunc(r.api, func(*Request) Turn {
		turn := turn
		turn.Edits = []Edit{joinFrames}
		turn.Break = &Break{After: cut, How: how}
		return turn
	}), 0)
	random := rand.New(rand.NewPCG(4, 1)) //nolint:gosec // the same cuts each time
	for i := range 120 {
		cut, how = random.IntN(size), Ending(i%2) // End and Abort by turns
		resp, err := r.complete(r.ctx, hello())
		r.checkCut(cut, size, whole, resp, err)
	}
}

func (r *rig) checkCancelAnywhere() {
	r.always(fullTurn())
	deltas := r.count()
	for n := range deltas {
		ctx, cancel := context.WithCancel(r.ctx)
		seen := 0
		var last error
		for d, err := range r.provider.Stream(ctx, hello()) {
			last = err
			if seen == n {
				cancel()
			}
			if seen++; err == nil && d.Kind == model.DeltaDone && n < deltas-1 {
				r.Errorf("cancelled at delta %d: the answer still ends as if it were complete", n)
			}
		}
		cancel()
		if n < deltas-1 && !errors.Is(last, context.Canceled) {
			r.Errorf("cancelled at delta %d: error %v", n, last)
		}
		if e := model.AsError(last); e != nil && e.Retryable() {
			r.Errorf("cancelled at delta %d: the error is retryable", n)
		}
	}
}

// count returns the number of deltas of the answer.
func (r *rig) count() int {
	n := 0
	for _, err := range r.provider.Stream(r.ctx, hello()) {
		if err != nil {
			r.Fatalf("%v", err)
		}
		n++
	}
	return n
}

// cancelBefore starts a server that cancels the request before the frame, and
// waits until the client is gone.
func (r *rig) cancelBefore(frame *int, cancel *context.CancelFunc) {
	turn := fullTurn()
	turn.Gate = func(ctx context.Context, i int) {
		if i == *frame {
			(*cancel)()
			<-ctx.Done()
		}
	}
	r.always(turn)
}

func (r *rig) checkCancelWhileWaiting() {
	frame, cancel := 0, context.CancelFunc(nil)
	r.cancelBefore(&frame, &cancel)
	turn := fullTurn()
	for frame = -1; frame < len(turn.streamed(r.api, r.traits.model)); frame++ {
		r.cancelled(frame, &cancel)
	}
	r.sub("before the request", func(r *rig) {
		r.always(fullTurn())
		ctx, cancel := context.WithCancel(r.ctx)
		cancel()
		if _, err := r.complete(ctx, hello()); !errors.Is(err, context.Canceled) {
			r.Errorf("error %v", err)
		}
	})
}

// cancelled sends a request that is cancelled before a frame.
func (r *rig) cancelled(frame int, cancel *context.CancelFunc) {
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	*cancel = stop
	resp, err := r.complete(ctx, hello())
	r.server.Wait() // the server still reads cancel
	if !errors.Is(err, context.Canceled) {
		r.Errorf("cancelled before frame %d: error %v, response %+v", frame, err, resp)
	}
}

// checkCancelAtRandom cancels 200 answers before frames or after deltas.
func (r *rig) checkCancelAtRandom() {
	frame, cancel := 0, context.CancelFunc(nil)
	r.cancelBefore(&frame, &cancel)
	turn := fullTurn()
	frames := len(turn.streamed(r.api, r.traits.model))
	random := rand.New(rand.NewPCG(4, 200)) //nolint:gosec // the same points each time
	for range 100 {
		frame = random.IntN(frames)
		r.cancelled(frame, &cancel)
	}
	frame = frames // never
	deltas := r.count()
	for range 100 {
		ctx, stop := context.WithCancel(r.ctx)
		left := random.IntN(deltas - 2) // before the usage and the end
		var last error
		for _, err := range r.provider.Stream(ctx, hello()) {
			if left--; left < 0 {
				stop()
			}
			last = err
		}
		stop()
		if !errors.Is(last, context.Canceled) {
			r.Errorf("cancelled after a delta: error %v", last)
		}
	}
}

func (r *rig) checkDeadline() {
	turn := fullTurn()
	turn.Gate = HoldAt(4, nil)
	r.start(turn)
	ctx, cancel := context.WithTimeout(r.ctx, 20*time.Millisecond)
	defer cancel()
	if e := r.mustFail(ctx, hello()); !errors.Is(e, context.DeadlineExceeded) || e.Code != model.CodeTimeout {
		r.Errorf("code %s, error %v", e.Code, e)
	}
}

// checkBreakAnywhere leaves the loop at each delta. The server waits until the
// connection is closed.
func (r *rig) checkBreakAnywhere() {
	hold := true
	turn := fullTurn()
	last := len(turn.streamed(r.api, r.traits.model)) - 1
	turn.Gate = func(ctx context.Context, i int) {
		if hold && i == last {
			<-ctx.Done()
		}
	}
	r.always(turn)
	hold = false
	deltas := r.count()
	for n := range deltas {
		hold = n < deltas-4 // the rest comes with the end of the answer
		seen := 0
		for _, err := range r.provider.Stream(r.ctx, hello()) {
			if err != nil {
				r.Fatalf("%v", err)
			}
			if seen++; seen > n {
				break
			}
		}
		r.server.Wait()
	}
}
