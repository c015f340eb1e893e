package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// partitionsCmd shows the physical partitions of a container of a running server, and splits and merges them.
type partitionsCmd struct {
	Data     string
	Endpoint string
	keyFlags
	JSON bool
}

func (c *partitionsCmd) command(s *streams) *cobra.Command {
	var of string
	cmd := &cobra.Command{Use: "partitions DATABASE/CONTAINER",
		Short: "Draw the physical partitions of a container, and say whether its partition key is a good one.",
		Args:  only(func(arg string) error { of = arg; return nil }),
		RunE:  runs(func() error { return c.report(s, of, server.AskForPartitions) })}
	f := cmd.PersistentFlags()
	f.StringVar(&c.Data, "data", "", "Data `DIR` of the server, which says where it is and its key; without it and "+
		"--endpoint ./data is looked at, and then the default address.")
	urlVar(f, &c.Endpoint, "endpoint", "", "`URL` of the server's admin port, in place of --data; with --key or "+
		"--key-file.")
	c.keyFlags.flags(f)
	f.BoolVar(&c.JSON, "json", false, "Print JSON, as /orrery/partitions of the admin port.")
	for do, short := range map[string]string{"split": "Split a physical partition in two.",
		"merge": "Merge a physical partition with the one that follows."} {
		cmd.AddCommand(&cobra.Command{Use: do + " DATABASE/CONTAINER ID", Short: short,
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) != 2 {
					return fmt.Errorf("want two arguments: %s", cmd.UseLine())
				}
				return nil
			},
			RunE: func(_ *cobra.Command, args []string) error {
				return runs(func() error { return c.change(s, do, args[0], args[1]) })(nil, nil)
			}})
	}
	return cmd
}

// change has the server change a partition, and shows the partitions afterwards.
func (c *partitionsCmd) change(s *streams, do, of, id string) error {
	ask := func(ctx context.Context, admin, key, db, container string) (*server.PartitionsReport, error) {
		return server.AskToChangePartitions(ctx, admin, key, server.PartitionsChange{Database: db, Container: container,
			Partition: id, Do: do})
	}
	return c.report(s, of, ask)
}

// report shows the report that ask gets from the server.
func (c *partitionsCmd) report(s *streams, of string,
	ask func(ctx context.Context, admin, key, db, container string) (*server.PartitionsReport, error)) error {
	db, container, ok := strings.Cut(of, "/")
	if !ok || db == "" || container == "" {
		return fmt.Errorf("%s: want DATABASE/CONTAINER", of)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	admin, key, err := c.server()
	if err != nil {
		return err
	}
	r, err := ask(ctx, admin, key, db, container)
	if ctx.Err() != nil {
		return errors.New("cancelled")
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return unreached(admin, err)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, r)
	}
	return writePartitions(s.out, r)
}

// server returns the admin address and the key of the server.
func (c *partitionsCmd) server() (admin, key string, err error) {
	if c.Endpoint != "" {
		key, err = c.key()
		return c.Endpoint, key, err
	}
	dir := c.Data
	if dir == "" {
		dir = "data"
	}
	conns, err := server.ReadConnections(dir)
	switch {
	case err != nil && c.Data == "":
		key, err = c.key()
		return "http://" + server.Default().AdminAddr, key, err
	case err != nil:
		return "", "", err
	case conns.Admin == nil:
		return "", "", fmt.Errorf("the server of %s has no admin port (--admin-addr off)", dir)
	}
	return conns.Admin.Endpoint, conns.Key, nil
}

// The lengths of the longest bars, in characters. A physical partition has three in a line.
const (
	keyWidth       = 40
	partitionWidth = 14
)

// drawn returns a bar for a part of a whole. It has the length width if that is the whole.
func drawn(part, whole int64, width int) (string, error) {
	var out bytes.Buffer
	b := progressbar.NewOptions64(max(whole, 1), progressbar.OptionSetWriter(&out),
		progressbar.OptionSetWidth(width), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: " ", BarStart: "|", BarEnd: "|"}))
	if err := b.Set64(part); err != nil {
		return "", err
	}
	_, text, _ := strings.Cut(b.String(), "|")
	text, _, _ = strings.Cut(text, "|")
	return fmt.Sprintf("|%-*s|", width, text), nil // a bar without a part has no padding of its own
}

// writePartitions draws a report.
func writePartitions(w io.Writer, r *server.PartitionsReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s: %s", r.Database, r.Container, counted(len(r.Partitions), "physical partition"))
	if r.Throughput > 0 {
		fmt.Fprintf(&b, ", %d RU/s", r.Throughput)
	}
	if r.Resizing {
		b.WriteString(", being split for the throughput")
	}
	if r.Waiting > 0 {
		fmt.Fprintf(&b, ", %d writes wait at this process", r.Waiting)
	}
	b.WriteByte('\n')
	for _, l := range r.Leases {
		who := l.Process
		if l.Name != "" {
			who = l.Name + " (" + l.Process + ")"
		}
		if l.Mine {
			who += ", this process"
		}
		fmt.Fprintf(&b, "%6s: %s\n", l.Work, who)
	}
	if err := drawPartitions(&b, r.Partitions); err != nil {
		return err
	}
	if len(r.Heaviest) > 0 {
		of := fmt.Sprintf("the largest of %d", r.Keys)
		if !r.AllKeys {
			of += " that were looked at"
		}
		fmt.Fprintf(&b, "partition keys, %s:\n", of)
		for _, l := range r.Heaviest {
			bar, err := drawn(l.Bytes, r.Heaviest[0].Bytes, keyWidth)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%6s %s %10s %10d items %s\n", l.Partition, bar, size(l.Bytes), l.Items, oneLine(l.Key))
		}
	}
	b.WriteString(r.Advice + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// drawPartitions draws bars for what each physical partition holds and uses. The longest bars are those of the
// partition that has most.
func drawPartitions(b *strings.Builder, ps []server.PhysicalReport) error {
	figures := func(p *server.PhysicalReport) [3]int64 {
		return [...]int64{p.Bytes, p.Items, int64(p.RU * 10)} // the digits of the RU/s that are printed
	}
	var most [3]int64
	for i := range ps {
		for k, n := range figures(&ps[i]) {
			most[k] = max(most[k], n)
		}
	}
	for i := range ps {
		p := &ps[i]
		var bars [3]string
		for k, n := range figures(p) {
			var err error
			if bars[k], err = drawn(n, most[k], partitionWidth); err != nil {
				return err
			}
		}
		fmt.Fprintf(b, "%6s %s %10s %s %9d items %s %8.1f RU/s\n", p.ID, bars[0], size(p.Bytes), bars[1], p.Items,
			bars[2], p.RU)
	}
	return nil
}

// oneLine returns a JSON value without the space that the server has put in.
func oneLine(value []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return value
	}
	return out.Bytes()
}
