package guides

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// An example of a guide in Go is the text between the lines "begin NAME" and "end NAME" of this file, so it is compiled
// and runs as it is printed. It has the database and the container of its block, prints lines, and adds its request
// units to charge.
type example struct {
	client    *azcosmos.Client
	db        *azcosmos.DatabaseClient
	container *azcosmos.ContainerClient
	charge    float32
	lines     []any

	partitions func() int // the number of physical partitions of container
}

func (e *example) print(args ...any) {
	e.lines = append(e.lines, strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

var examples = map[string]func(e *example) error{
	"read": (*example).read, "bucket": (*example).bucket, "shared": (*example).shared, "expire": (*example).expire,
	"split": (*example).split, "lookup": (*example).lookup, "batch": (*example).batch, "grow": (*example).grow,
}

func (e *example) read() error {
	container := e.container
	// begin read
	item, err := container.ReadItem(ctx, azcosmos.NewPartitionKeyString("1"), "1", nil)
	// end read
	if err == nil {
		e.charge += item.RequestCharge
		e.print(len(item.Value) > 300)
	}
	return err
}

func (e *example) batch() error {
	container := e.container
	// begin batch
	batch := container.NewTransactionalBatch(azcosmos.NewPartitionKeyString("b2"))
	batch.CreateItem([]byte(`{"id": "b2", "bookId": "b2", "type": "book", "name": "Learn about Azure Cosmos DB"}`), nil)
	batch.CreateItem([]byte(`{"id": "r1", "bookId": "b2", "type": "review", "content": "Clear"}`), nil)
	result, err := container.ExecuteTransactionalBatch(ctx, batch, nil)
	// end batch
	if err == nil {
		e.charge += result.RequestCharge
		e.print(result.Success)
	}
	return err
}

func (e *example) bucket() error {
	container := e.container
	// begin bucket
	at := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	key := "XMS-0001|" + at.Format("2006-01-02")
	reading := fmt.Sprintf(`{"id": %q, "deviceDay": %q, "metricValue": 46.9}`, at.Format("15:04:05"), key)
	item, err := container.CreateItem(ctx, azcosmos.NewPartitionKeyString(key), []byte(reading), nil)
	// end bucket
	if err == nil {
		e.charge += item.RequestCharge
		e.print(key)
	}
	return err
}

func (e *example) expire() error {
	db := e.db
	// begin expire
	month := int32(30 * 24 * 60 * 60)
	_, err := db.CreateContainer(ctx, azcosmos.ContainerProperties{
		ID:                     "metrics",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/deviceDay"}},
		DefaultTimeToLive:      &month,
	}, nil)
	// end expire
	if err == nil {
		c, err := db.NewContainer("metrics")
		if err != nil {
			return err
		}
		r, err := c.Read(ctx, nil)
		if err != nil {
			return err
		}
		e.print(*r.ContainerProperties.DefaultTimeToLive)
	}
	return err
}

func (e *example) lookup() error {
	users, err := e.db.NewContainer("users")
	if err != nil {
		return err
	}
	emails, err := e.db.NewContainer("emails")
	if err != nil {
		return err
	}
	// begin lookup
	entry, err := emails.ReadItem(ctx, azcosmos.NewPartitionKeyString("ann@contoso.com"), "ann@contoso.com", nil)
	if err != nil {
		return err
	}
	var found struct{ UserID string }
	if err := json.Unmarshal(entry.Value, &found); err != nil {
		return err
	}
	user, err := users.ReadItem(ctx, azcosmos.NewPartitionKeyString(found.UserID), found.UserID, nil)
	// end lookup
	if err == nil {
		e.charge += entry.RequestCharge + user.RequestCharge
		e.print(found.UserID)
	}
	return err
}

func (e *example) shared() error {
	client := e.client
	// begin shared
	throughput := azcosmos.NewManualThroughputProperties(1000)
	_, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "tenants"},
		&azcosmos.CreateDatabaseOptions{ThroughputProperties: &throughput})
	if err != nil {
		return err
	}
	tenants, err := client.NewDatabase("tenants")
	if err != nil {
		return err
	}
	for _, tenant := range []string{"acme", "zeta"} {
		_, err := tenants.CreateContainer(ctx, azcosmos.ContainerProperties{
			ID:                     tenant,
			PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/user"}},
		}, nil)
		if err != nil {
			return err
		}
	}
	// end shared
	r, err := tenants.ReadThroughput(ctx, nil)
	if err != nil {
		return err
	}
	ru, _ := r.ThroughputProperties.ManualThroughput()
	e.print(ru)
	return nil
}

func (e *example) split() error {
	container := e.container
	before := e.partitions()
	// begin split
	_, err := container.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(20000), nil)
	// end split
	if err != nil {
		return err
	}
	for begun := time.Now(); e.partitions() != 2; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			return fmt.Errorf("%d physical partitions", e.partitions())
		}
	}
	e.print(before, "physical partition, then", e.partitions())
	return nil
}

func (e *example) grow() error {
	container := e.container
	// begin grow
	comments := strings.Repeat(`{"author": "anon", "comment": "something useful, I'm sure"},`, 40000)
	post := `{"id": "post", "postId": "1", "comments": [` + comments + `{}]}`
	_, err := container.ReplaceItem(ctx, azcosmos.NewPartitionKeyString("1"), "post", []byte(post), nil)
	// end grow
	var refused *azcore.ResponseError
	if !errors.As(err, &refused) {
		return fmt.Errorf("not refused: %w", err)
	}
	e.print(refused.StatusCode)
	return nil
}

// example runs an example and returns the lines that it prints. The block must have the example's text.
func (g *guide) example(b block) []any {
	g.t.Helper()
	name := b.args["example"]
	run := examples[name]
	if run == nil {
		g.t.Fatalf("line %d: there is no example %q", b.line, name)
	}
	if want := codeOf(name); b.text != want {
		g.t.Errorf("line %d: the guide's text of the example %s isn't its code:\n%s", b.line, name, want)
	}
	e := &example{db: g.db, client: g.client}
	if b.args["container"] != "" {
		e.container = g.container(b)
		e.partitions = func() int { return g.partitions(b) }
	}
	if err := run(e); err != nil {
		g.t.Fatalf("line %d: %v", b.line, err)
	}
	g.charge = float64(e.charge)
	return e.lines
}

// codeOf returns the text of an example, without its indentation.
func codeOf(name string) string {
	b, err := os.ReadFile("examples_test.go")
	if err != nil {
		return err.Error()
	}
	_, text, _ := strings.Cut(string(b), "\t// begin "+name+"\n")
	text, _, _ = strings.Cut(text, "\t// end "+name+"\n")
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimPrefix(line, "\t"))
	}
	return out.String()
}
