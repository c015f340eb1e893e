package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/orrerydb/orrery/core/json"
)

// rowTable draws rows, which are written to it as JSON lines, as tables that fit a width. A table has up to 200 rows,
// so that a long result is shown while it arrives.
//
//	id  name       total
//	1   Ann Smith  12.5
type rowTable struct {
	out   io.Writer
	width int
	rest  []byte // of a line that isn't complete
	rows  []map[string]string
	names []string
	n     int
}

// tableRows is the number of rows of one table.
const tableRows = 200

// systemFields are the fields that the server computes.
var systemFields = []string{"_rid", "_self", "_etag", "_attachments", "_ts"}

// aValue is the name of the column of rows that are no objects.
const aValue = "value"

// Write implements io.Writer.
func (t *rowTable) Write(b []byte) (int, error) {
	t.rest = append(t.rest, b...)
	for {
		line, rest, ok := bytes.Cut(t.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		t.add(line)
		t.rest = append([]byte(nil), rest...)
		if len(t.rows) == tableRows {
			if err := t.draw(); err != nil {
				return 0, err
			}
		}
	}
}

// add adds a row. The fields that the server computes are left out.
func (t *rowTable) add(line []byte) {
	row := map[string]string{}
	put := func(name string, raw []byte) {
		if _, ok := row[name]; !ok {
			known := false
			for _, n := range t.names {
				known = known || n == name
			}
			if !known {
				t.names = append(t.names, name)
			}
		}
		text := string(raw)
		if s, ok := json.String(raw); ok {
			text = s
		}
		row[name] = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 { // what would move the cursor
				return '·'
			}
			return r
		}, text)
	}
	err := json.EachMember(line, func(name string, raw []byte) error {
		if !slices.Contains(systemFields, name) {
			put(name, raw)
		}
		return nil
	})
	if err != nil {
		put(aValue, line)
	}
	t.n++
	t.rows = append(t.rows, row)
}

// leastColumn is the width of the narrowest column that is shown.
const leastColumn = 4

// draw writes the table of the rows so far.
func (t *rowTable) draw() error {
	if len(t.rows) == 0 {
		return nil
	}
	widths := make([]int, len(t.names))
	for i, name := range t.names {
		widths[i] = uniseg.StringWidth(name)
		for _, row := range t.rows {
			widths[i] = max(widths[i], uniseg.StringWidth(row[name]))
		}
	}
	hidden := fit(widths, t.width)
	var b strings.Builder
	line := func(cell func(name string) string) {
		at := b.Len()
		for i, w := range widths[:len(widths)-hidden] {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(padded(cell(t.names[i]), w))
		}
		text := strings.TrimRight(b.String()[at:], " ")
		rest := b.String()[:at]
		b.Reset()
		b.WriteString(rest + text + "\n")
	}
	line(func(name string) string { return name })
	for _, row := range t.rows {
		line(func(name string) string { return row[name] })
	}
	if hidden > 0 {
		fmt.Fprintf(&b, "(%d more columns don't fit: :json)\n", hidden)
	}
	t.rows, t.names = t.rows[:0], nil
	_, err := io.WriteString(t.out, b.String())
	return err
}

// fit makes columns narrower until they fit a width, the widest first. It returns how many don't fit even so.
func fit(widths []int, width int) (hidden int) {
	if width <= 0 {
		return 0
	}
	for {
		total, widest := -2, 0
		shown := widths[:len(widths)-hidden]
		for i, w := range shown {
			total += w + 2
			if w > shown[widest] {
				widest = i
			}
		}
		switch {
		case total <= width:
			return hidden
		case shown[widest] > leastColumn:
			shown[widest] -= min(total-width, (shown[widest]-leastColumn+1)/2)
		case len(shown) == 1:
			return hidden
		default:
			hidden++
		}
	}
}

// padded returns a text of a width: with spaces behind it, or cut. Letters of Chinese, Japanese and Korean are as wide
// as two others.
func padded(s string, w int) string {
	n := uniseg.StringWidth(s)
	if n <= w {
		return s + strings.Repeat(" ", w-n)
	}
	var b strings.Builder
	at := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		if at+g.Width() > w-1 {
			break
		}
		at += g.Width()
		b.WriteString(g.Str())
	}
	return b.String() + "…" + strings.Repeat(" ", w-1-at)
}

// flush draws what is left, and says how many rows there were, what they cost and how long they took.
func (t *rowTable) flush(charge float64, took time.Duration) error {
	if err := t.draw(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.out, "%s, %.2f RU, %s\n", counted(t.n, "row"), charge, shortTime(took))
	return err
}

// shortTime returns a duration as people read it: 8.4 ms, 312 ms, 12.5 s.
func shortTime(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// counted returns a number of things: 1 row, 2 rows.
func counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
