package pdftext

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// Limits of the process.
const (
	maxDocument = 64 << 20 // bytes
	maxMemory   = 512 << 20
	maxStack    = 64 << 20
	maxTime     = 20 * time.Second
)

// exitMemory is the exit code of a process that needed too much memory.
const exitMemory = 3

var (
	errLarge  = fmt.Errorf("the document has more than %d MiB: extract its text with shell, for example with pdftotext", maxDocument>>20)
	errMemory = fmt.Errorf("the document needs more than %d MiB of memory: read fewer pages, or use shell, for example pdftotext", maxMemory>>20)
	errTime   = errors.New("reading the document takes too long: read fewer pages, or use shell, for example pdftotext")
)

// Reader reads documents, each in a separate process. It is safe for concurrent use.
type Reader struct {
	// Command is the program that calls [Serve] with the arguments that follow
	// these.
	Command    []string
	Supervisor *proc.Supervisor
	Sandbox    sandbox.Mode
	Timeout    time.Duration // 0 = 20 seconds
}

// Read returns the text of at most limit pages, the first of which is counted from
// 1, and the number of all pages. It stops after the page with which the text has
// maxBytes.
func (r *Reader) Read(ctx context.Context, pdf io.Reader, first, limit, maxBytes int) (pages []string, total int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(r.Timeout, maxTime), errTime)
	defer cancel()
	args := append(r.Command[1:len(r.Command):len(r.Command)], strconv.Itoa(first), strconv.Itoa(limit), strconv.Itoa(maxBytes))
	in := &input{from: io.LimitReader(pdf, maxDocument+1)}
	var out bytes.Buffer
	p, err := r.Supervisor.Start(ctx, proc.Spec{
		Path: r.Command[0], Args: args, Dir: filepath.Dir(r.Command[0]), Env: []string{}, Stdin: in, Stdout: &out, Sandbox: r.profile(),
	})
	if err != nil {
		return nil, 0, err
	}
	exit, err := p.Wait()
	var a answer
	switch {
	case errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(ctx), errTime), exit.Signal == "SIGXCPU", exit.Signal == "SIGKILL" && err == nil:
		return nil, 0, errTime
	case err != nil:
		return nil, 0, err
	case in.err != nil:
		return nil, 0, in.err
	case exit.Code == exitMemory:
		return nil, 0, errMemory
	case json.Unmarshal(out.Bytes(), &a) != nil || exit.Code != 0:
		return nil, 0, fmt.Errorf("%w (the process that reads it ended with exit code %d)", errDamaged, exit.Code)
	case a.Error != "":
		return nil, 0, errors.New(a.Error)
	}
	return a.Pages, a.Total, nil
}

// profile is the sandbox: nothing but what programs need to start.
func (r *Reader) profile() *sandbox.Profile {
	if r.Sandbox == sandbox.ModeOff {
		return nil
	}
	program := sandbox.Resolve(r.Command[0])
	visible := append(sandbox.SystemPaths(), program)
	return &sandbox.Profile{
		Mode: r.Sandbox, Readable: []string{program}, Masked: sandbox.HideExcept(sandbox.UserRoots(), visible),
		Limits: sandbox.Limits{Memory: 2 * maxMemory, CPU: maxTime},
	}
}

// input remembers why a document could not be read.
type input struct {
	from io.Reader
	err  error
}

// Read implements [io.Reader].
func (in *input) Read(p []byte) (int, error) {
	n, err := in.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		in.err = err
	}
	return n, err
}

// answer is what the process prints.
type answer struct {
	document
	Error string `json:"error,omitempty"`
}

// Serve is the process that a [Reader] starts: it reads a document from in, and
// prints the pages that the arguments of the command line name. It changes settings
// of the whole process, and may end it.
func Serve(in io.Reader, out io.Writer, args []string) error {
	var numbers [3]int
	if len(args) != len(numbers) {
		return errors.New("give the first page, the number of pages and the bytes of text")
	}
	for i, arg := range args {
		var err error
		if numbers[i], err = strconv.Atoi(arg); err != nil || numbers[i] < 1 {
			return fmt.Errorf("%q is not a positive number", arg)
		}
	}
	debug.SetMaxStack(maxStack)
	go watchMemory() // until the process ends
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var a answer
	if err = errLarge; len(data) <= maxDocument {
		a.document, err = read(data, numbers[0], numbers[1], numbers[2])
	}
	if err != nil {
		a.Error = strings.ToValidUTF8(err.Error(), "\uFFFD")
	}
	return json.NewEncoder(out).Encode(a)
}

// watchMemory ends the process when it uses too much memory.
func watchMemory() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for range time.Tick(20 * time.Millisecond) {
		metrics.Read(sample)
		if sample[0].Value.Uint64()+sample[1].Value.Uint64() > maxMemory {
			os.Exit(exitMemory)
		}
	}
}
