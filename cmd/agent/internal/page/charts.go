package page

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// Size of a curve, in the units of its view box.
const (
	chartWidth  = 600
	chartHeight = 120
	chartSteps  = 300 // points at most
)

// line is one line of a curve.
type line struct {
	class  string
	values []float64
}

// curve draws lines over the model calls. Label describes it to those who do not see it;
// top is what its highest value is called.
func curve(label, top string, lines ...line) template.HTML {
	most, n := 0.0, 0
	for _, l := range lines {
		n = max(n, len(l.values))
		for _, v := range l.values {
			most = max(most, v)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="curve" role="img" viewBox="0 0 %d %d" aria-label="%s">`, chartWidth, chartHeight+20, template.HTMLEscapeString(label))
	fmt.Fprintf(&b, `<path class="axis" d="M0 14H%d M0 %dH%d"/>`, chartWidth, chartHeight+14, chartWidth)
	for _, l := range lines {
		fmt.Fprintf(&b, `<polyline class="%s" points="`, l.class)
		step := max(1, (len(l.values)+chartSteps-1)/chartSteps)
		for i := 0; i < len(l.values); i++ {
			if i%step != 0 && i != len(l.values)-1 {
				continue
			}
			x, y := 0.0, 0.0
			if n > 1 {
				x = float64(i) / float64(n-1) * chartWidth
			}
			if most > 0 {
				y = l.values[i] / most * chartHeight
			}
			fmt.Fprintf(&b, "%.1f,%.1f ", x, chartHeight+14-y)
			if n == 1 { // a line needs two points
				fmt.Fprintf(&b, "%d,%.1f", chartWidth, chartHeight+14-y)
			}
		}
		b.WriteString(`"/>`)
	}
	fmt.Fprintf(&b, `<text class="label" x="0" y="10">%s</text></svg>`, template.HTMLEscapeString(top))
	return template.HTML(b.String()) //nolint:gosec // numbers and escaped texts
}

// chart is a curve with its heading.
type chart struct {
	Title, Key string
	SVG        template.HTML
}

// curves draws tokens, cost and context over the model calls.
func (r *record) curves() []chart {
	n := len(r.Points)
	if n == 0 {
		return nil
	}
	var in, cached, out, cost, context []float64
	for _, p := range r.Points {
		in, cached, out = append(in, float64(p.Input)), append(cached, float64(p.Cached)), append(out, float64(p.Output))
		cost, context = append(cost, p.Cost), append(context, float64(p.Context))
	}
	last, most := r.Points[n-1], 0
	for _, p := range r.Points {
		most = max(most, p.Context)
	}
	calls := display.Plural(n, "model call")
	all := []chart{{
		"Tokens", "input, of it cached (dashed), output (thick)",
		curve(fmt.Sprintf("Tokens over %s: %d input, %d of them cached, %d output.", calls, last.Input, last.Cached, last.Output), display.Count(max(last.Input, last.Output)),
			line{"in", in}, line{"cached", cached}, line{"out", out}),
	}}
	if r.Unpriced < n {
		all = append(all, chart{"Cost", "in total", curve(fmt.Sprintf("Cost over %s: %s.", calls, r.CostText()), dollars(last.Cost), line{"out", cost})})
	}
	return append(all, chart{
		"Context", "tokens of each request",
		curve(fmt.Sprintf("Tokens of the request over %s: at most %d, %d in the last.", calls, most, last.Context), display.Count(most), line{"in", context}),
	})
}

// costText returns a cost, as far as it is known.
func costText(usd float64, unpriced, calls int) string {
	switch {
	case unpriced == 0:
		return dollars(usd)
	case unpriced >= calls:
		return "unknown"
	}
	return fmt.Sprintf("%s and %s without a known price", dollars(usd), display.Plural(unpriced, "call"))
}

func dollars(usd float64) string {
	if usd != 0 && usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// bar draws when something ran, as a part of the time of its input.
func (t *turn) bar(l *row) template.HTML {
	total := t.End.Sub(t.Start)
	if total <= 0 {
		total = 1
	}
	end := l.End
	if end.Before(l.Start) {
		end = l.Start
	}
	share := func(d time.Duration) float64 { return 1000 * float64(max(0, min(d, total))) / float64(total) }
	x := min(share(l.Start.Sub(t.Start)), 996)
	width := max(4, share(end.Sub(l.Start)))
	class := l.Kind
	if l.Failed {
		class += " failed"
	}
	return template.HTML(fmt.Sprintf(`<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect class="%s" x="%.1f" y="1" width="%.1f" height="8"/></svg>`, //nolint:gosec // numbers and words of this package
		class, x, min(width, 1000-x)))
}

// shareBar draws how much of the whole a share is.
func shareBar(part, whole int) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect class="model" x="0" y="1" width="%.1f" height="8"/></svg>`, //nolint:gosec // a number
		1000*float64(part)/float64(max(1, whole))))
}
