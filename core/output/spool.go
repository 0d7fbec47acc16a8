package output

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// inline is the largest full output that is kept in memory. A longer one goes to
// a file.
const inline = 64 << 10

// inlineAlone is the same without a file to write to.
const inlineAlone = 1 << 20

// File stores a long output.
type File interface {
	io.WriteCloser
	Handle() string // the name under which the model can read it
	Path() string   // the file on this machine; empty if there is none
}

// Full is the full output as it was written, if the model gets less: a part, or
// none of the escape sequences.
type Full struct {
	Text   string // up to 64 KiB, 1 MiB if there is no file; else empty
	Handle string // of the file that holds a longer one; empty if it could not be stored
	Path   string // see File
	Bytes  int64
}

// Spool collects the text of one tool call's result while it is written. It
// keeps all of a short text; of a long one it keeps the two ends for the model,
// and writes the full text to a file in the context store.
//
// It is safe for concurrent use.
type Spool struct {
	limit Limit
	most  int64 // bytes of a full output that is kept in memory
	open  func() (File, error)
	emit  func(text string)

	mu     sync.Mutex
	clean  cleaner
	plain  *plain // what the model gets of the live output
	raw    []byte // the full output, as long as it is kept in memory
	head   []byte // the first part of what the model gets, up to room bytes
	tail   []byte // what came after; its beginning is dropped
	gap    bool   // text between head and tail was dropped
	room   int
	chars  int
	size   int64
	file   File
	buf    *bufio.Writer
	err    error // why there is no file
	closed bool
}

// NewSpool returns a spool. Open creates the file for a long output; if it is
// nil, there is none. Emit is called with live output, in order, with secrets
// replaced.
func NewSpool(limit Limit, secrets []string, open func() (File, error), emit func(text string)) *Spool {
	limit = limit.withDefaults()
	most := inline
	if open == nil {
		most = inlineAlone
	}
	s := &Spool{
		limit: limit, most: int64(most), open: open, emit: emit, clean: cleaner{secrets: secrets},
		room: max(most, utf8.UTFMax*limit.MaxChars),
	}
	s.plain = newPlain(s.add)
	return s
}

var errSpoolClosed = errors.New("the tool call has ended: its output is closed")

// Write takes live output. The model gets it without escape sequences, as
// [Plain] does.
func (s *Spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errSpoolClosed
	}
	if text := s.clean.next(p, false); text != "" {
		s.live(text)
	}
	return len(p), nil
}

// live takes clean live output.
func (s *Spool) live(text string) {
	s.keep(text)
	s.plain.write(text)
	s.emit(text)
}

// keep keeps text as it was written.
func (s *Spool) keep(text string) {
	s.size += int64(len(text))
	if s.size > inline {
		s.toFile(text)
	}
	if s.size <= s.most {
		s.raw = append(s.raw, text...)
	}
}

// add appends text for the model.
func (s *Spool) add(text string) {
	s.chars += utf8.RuneCountInString(text)
	if n := min(s.room-len(s.head), len(text)); n > 0 {
		s.head = append(s.head, text[:n]...)
		text = text[n:]
	}
	s.tail = append(s.tail, text...)
	if len(s.tail) > 2*s.room {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-s.room:]...)
		s.gap = true
	}
}

// toFile writes text to the file. It opens the file if needed and writes the
// earlier text first.
func (s *Spool) toFile(text string) {
	if s.open == nil || s.err != nil {
		return
	}
	if s.file == nil {
		if s.file, s.err = s.open(); s.err != nil {
			s.file = nil
			return
		}
		s.buf = bufio.NewWriterSize(s.file, 64<<10)
		_, s.err = s.buf.Write(s.raw)
	}
	if s.err == nil {
		_, s.err = s.buf.WriteString(text)
	}
}

// Finish adds the text that the tool returned, closes the spool, and returns
// what the model gets and, if that is not everything, the full output. The error
// says why the full output could not be stored; the results are valid anyway.
func (s *Spool) Finish(text string) (string, *Full, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.clean.next(nil, true); last != "" {
		s.live(last)
	}
	s.plain.flush()
	if text != "" {
		if last := s.lastByte(); last != 0 && last != '\n' {
			s.keep("\n")
			s.add("\n")
		}
		text = s.clean.next([]byte(text), true)
		s.keep(text)
		s.add(text)
	}
	s.closed = true
	kept, cut := s.kept()
	if !cut && !s.plain.changed {
		s.discard()
		return kept, nil, nil
	}
	out := &Full{Bytes: s.size}
	if s.size <= s.most {
		out.Text = string(s.raw)
		if cut {
			s.toFile("") // for the handle
		}
	}
	err := s.closeFile()
	stored := s.file != nil && err == nil
	if stored && out.Text == "" {
		out.Handle, out.Path = s.file.Handle(), s.file.Path()
	}
	switch {
	case cut && stored:
		kept += "\n[Full output: " + s.file.Handle() + " (open it with read_file)]"
	case cut && out.Text == "":
		kept = strings.Replace(kept, fullAvailable, fullLost, 1)
	}
	return kept, out, err
}

// kept returns the text that the model gets.
func (s *Spool) kept() (string, bool) {
	if !s.gap {
		return Truncate(string(s.head)+string(s.tail), s.limit)
	}
	text := truncateChars(string(s.head), strings.ToValidUTF8(string(s.tail), ""), s.chars, s.limit)
	text, _ = truncateLines(text, s.limit)
	return text, true
}

// lastByte returns the last byte of what the model gets.
func (s *Spool) lastByte() byte {
	for _, part := range [][]byte{s.tail, s.head} {
		if len(part) > 0 {
			return part[len(part)-1]
		}
	}
	return 0
}

func (s *Spool) closeFile() error {
	if s.file == nil {
		return s.err
	}
	err := s.err
	if err == nil {
		err = s.buf.Flush()
	}
	return errors.Join(err, s.file.Close())
}

// discard closes a file that is not needed after all. It is removed with the
// session's store.
func (s *Spool) discard() {
	_ = s.closeFile() // the model has the whole text
}

// redacted replaces a secret.
const redacted = "[redacted]"

// Redact replaces the secrets in complete data, such as JSON.
func Redact(data []byte, secrets []string) []byte {
	for _, secret := range secrets {
		if bytes.Contains(data, []byte(secret)) {
			data = bytes.ReplaceAll(data, []byte(secret), []byte(redacted))
		}
	}
	return data
}

// cleaner makes a stream of bytes valid UTF-8 without secrets, even if they are
// split over several writes.
type cleaner struct {
	secrets []string
	carry   []byte
}

// next adds bytes and returns the text that is final by now; with final, all of
// it.
func (c *cleaner) next(p []byte, final bool) string {
	buf := p
	if len(c.carry) > 0 {
		buf = append(c.carry, p...)
		c.carry = nil
	}
	buf = Redact(buf, c.secrets)
	hold := 0
	if !final {
		hold = max(incompleteRune(buf), c.secretPrefix(buf))
		c.carry = bytes.Clone(buf[len(buf)-hold:])
	}
	if buf = buf[:len(buf)-hold]; utf8.Valid(buf) { // the fast path
		return string(buf)
	}
	return strings.ToValidUTF8(string(buf), "\uFFFD")
}

// secretPrefix returns the length of the longest suffix of buf that is a prefix
// of a secret.
func (c *cleaner) secretPrefix(buf []byte) int {
	longest := 0
	for _, secret := range c.secrets {
		for n := min(len(secret)-1, len(buf)); n > longest; n-- {
			if bytes.HasSuffix(buf, []byte(secret[:n])) {
				longest = n
				break
			}
		}
	}
	return longest
}

// incompleteRune returns the length of an incomplete UTF-8 sequence at the end.
func incompleteRune(buf []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(buf); n++ {
		if b := buf[len(buf)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(buf[len(buf)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
