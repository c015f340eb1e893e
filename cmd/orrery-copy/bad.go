package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/orrerydb/orrery/cmd/orrery/transfer"
)

// badItem is the error of one item that a target can't have. The items behind it can be copied.
type badItem struct{ reason string }

// Error implements error.
func (b *badItem) Error() string { return b.reason }

// refused is an item of a batch that a target can't have.
type refused struct {
	at     int // in the batch
	reason string
}

// httpBad tells whether an answer is about the item that was sent, and not about the account or the container.
func httpBad(err error) error {
	var r *azcore.ResponseError
	if errors.As(err, &r) {
		switch r.StatusCode {
		case http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed,
			http.StatusRequestEntityTooLarge:
			return &badItem{explained(r)}
		}
	}
	return brief(err)
}

// mostOfReason is how many bytes of a server's message are kept.
const mostOfReason = 400

// explained is what a reply says of a refusal: its status, and its message in one line.
func explained(r *azcore.ResponseError) string {
	text := fmt.Sprintf("%d %s", r.StatusCode, http.StatusText(r.StatusCode))
	body, err := runtime.Payload(r.RawResponse)
	if err != nil {
		return text
	}
	var said struct {
		Message string
		OData   struct{ Message struct{ Value string } } `json:"odata.error"`
	}
	_ = json.Unmarshal(body, &said) // a body of another kind has no message
	message := strings.Join(strings.Fields(said.Message+said.OData.Message.Value), " ")
	if message == "" {
		return text
	}
	return text + ": " + message[:min(len(message), mostOfReason)]
}

// keepBad writes what a target refuses to the file of bad rows, with the number of each item in the order of the copy.
func (j *job) keepBad(st *kept, batch []change, bad []refused) error {
	for _, r := range bad {
		row := transfer.Bad{Line: st.Items + int64(r.at) + 1, Reason: r.reason, Text: batch[r.at].text()}
		row.Cut()
		if err := j.bad.Add(&row); err != nil {
			return err
		}
		if st.Bad++; st.Bad > j.maxErrors {
			return fmt.Errorf("too many items are bad: %d; the last is item %d: %s", st.Bad, row.Line, row.Reason)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	st.BadSize = j.bad.Size
	return j.bad.Sync()
}

// text shows an item.
func (c *change) text() []byte {
	if c.element != nil {
		return c.element.text()
	}
	return c.item
}
