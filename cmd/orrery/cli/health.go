package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// healthCmd asks a server whether it is ready: the check of a container, which has no other program to ask with.
type healthCmd struct{ Admin string }

func (h *healthCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "health", Short: "Ask a server whether it is ready; the exit code says so.",
		Args: noArguments, RunE: runs(func() error { return h.run(s) })}
	urlVar(cmd.Flags(), &h.Admin, "admin", "http://127.0.0.1:8080", "Admin `URL` of the server.")
	return cmd
}

// healthWait is how long an answer may take.
const healthWait = 3 * time.Second

func (h *healthCmd) run(s *streams) error {
	ctx, cancel := context.WithTimeout(context.Background(), healthWait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(h.Admin, "/")+"/ready", nil)
	if err != nil {
		return err
	}
	res, err := door.Client(0).Do(r)
	if err != nil {
		return unreached(h.Admin, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", strings.TrimSpace(string(text)))
	}
	_, err = s.out.Write(text)
	return err
}
