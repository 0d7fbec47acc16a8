package main

import (
	"slices"
	"time"
)

// unit is how a metric is printed.
type unit string

const (
	millis    unit = "ms"
	kilobytes unit = "kB"
	mebibytes unit = "MiB"
	factor    unit = "×"
)

// metric is one number of a run, with the target that the agent's median must
// not exceed; 0 is no target. value also gets the yardstick's run of the same
// round; for the yardstick, both are the same.
type metric struct {
	name   string
	unit   unit
	target float64
	value  func(r, base sample) float64
}

// sample is what was measured in one run of one contestant.
type sample struct {
	started time.Time
	wall    time.Duration
	before  *sample // of the run before it that it is compared with, or nil
	peak    int64   // bytes of resident memory, 0 if unknown
	traffic traffic
	output  []byte // of the process, its end
}

var peakMemory = metric{"peak memory", mebibytes, 40, func(r, _ sample) float64 { return float64(r.peak) / (1 << 20) }}

func wall(r, _ sample) float64 { return inMillis(r.wall) }

// timesPlain is how many times as long the run took as the one before it.
func timesPlain(r, _ sample) float64 {
	if r.before == nil {
		return 1
	}
	return float64(r.wall) / float64(r.before.wall)
}

// beyond is by how much a value exceeds that of the run before it; the yardstick, which
// has none, has the value itself.
func beyond(value func(r, base sample) float64) func(r, base sample) float64 {
	return func(r, base sample) float64 {
		if r.before == nil {
			return value(r, base)
		}
		return value(r, base) - value(*r.before, base)
	}
}

func firstRequest(r, _ sample) float64 { return inMillis(r.traffic.arrivals[0].Sub(r.started)) }

func requestSize(r, _ sample) float64 { return float64(r.traffic.firstSize) / 1000 }

func firstTurns(r, _ sample) float64 { return medianTurn(r.traffic.arrivals[:edge+1]) }

func turn(r, _ sample) float64 { return medianTurn(r.traffic.arrivals) }

func lastTurns(r, _ sample) float64 {
	all := r.traffic.arrivals
	return medianTurn(all[len(all)-edge-1:])
}

// growth is the ratio of a late turn's time to an early one's, minus the growth
// of the yardstick's turns: any program has to encode, send and read a longer
// conversation.
func growth(r, base sample) float64 {
	allowance := lastTurns(base, base) - firstTurns(base, base)
	return (lastTurns(r, base) - allowance) / firstTurns(r, base)
}

// medianTurn is the median time from one request to the next, in milliseconds.
func medianTurn(arrivals []time.Time) float64 {
	turns := make([]float64, 0, len(arrivals)-1)
	for i, at := range arrivals[1:] {
		turns = append(turns, inMillis(at.Sub(arrivals[i])))
	}
	return median(turns)
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median returns the middle of values, which must not be empty.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
