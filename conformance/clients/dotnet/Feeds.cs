// The change feed: pulled by an iterator, and by processors that share leases.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Threading.Tasks;
using Microsoft.Azure.Cosmos;
using static Check;

public static class Feeds
{
    public static async Task Run(Database db)
    {
        Container books = await Books(db, "feed", 60);
        await Test("from the beginning, and from a continuation", async () =>
        {
            FeedIterator<Book> feed =
                books.GetChangeFeedIterator<Book>(ChangeFeedStartFrom.Beginning(), ChangeFeedMode.Incremental);
            var seen = new List<string>();
            string continuation = null;
            while (feed.HasMoreResults)
            {
                FeedResponse<Book> page = await feed.ReadNextAsync();
                continuation = page.ContinuationToken;
                if (page.StatusCode == HttpStatusCode.NotModified) break;
                seen.AddRange(page.Select(b => b.id));
            }
            Equal(seen.Distinct().Count(), 60);
            await books.UpsertItemAsync(NewBook(1));
            List<Book> later = await All(books.GetChangeFeedIterator<Book>(
                ChangeFeedStartFrom.ContinuationToken(continuation), ChangeFeedMode.Incremental));
            Equal(string.Join(" ", later.Select(b => b.id)), "b1");
        });
        await Test("from now, of one partition key", async () =>
        {
            FeedIterator<Book> feed = books.GetChangeFeedIterator<Book>(
                ChangeFeedStartFrom.Now(FeedRange.FromPartitionKey(new PartitionKey("a1"))),
                ChangeFeedMode.Incremental);
            Equal((await feed.ReadNextAsync()).StatusCode, HttpStatusCode.NotModified);
            await books.UpsertItemAsync(NewBook(1));
            await books.UpsertItemAsync(NewBook(2));
            Equal(string.Join(" ", (await All(feed)).Select(b => b.id)), "b1");
        });
        await Test("two processors, one of which stops, miss nothing", async () =>
        {
            Container leases = await db.CreateContainerAsync("leases", "/id");
            var seen = new HashSet<string>();
            Func<string, ChangeFeedProcessor> start = name => books
                .GetChangeFeedProcessorBuilder<Book>("p", (context, changes, cancel) =>
                {
                    lock (seen) foreach (Book b in changes) seen.Add(b.id);
                    return Task.CompletedTask;
                })
                .WithInstanceName(name).WithLeaseContainer(leases).WithStartTime(DateTime.MinValue.ToUniversalTime())
                .WithPollInterval(TimeSpan.FromMilliseconds(200))
                .WithLeaseConfiguration(TimeSpan.FromSeconds(1), TimeSpan.FromSeconds(4), TimeSpan.FromSeconds(2))
                .Build();
            Func<int, Task> until = async count =>
            {
                for (int i = 0; i < 150; i++)
                {
                    lock (seen) if (seen.Count >= count) return;
                    await Task.Delay(200);
                }
                lock (seen) throw new Exception(seen.Count + " of " + count);
            };
            ChangeFeedProcessor one = start("one"), two = start("two");
            await one.StartAsync();
            await two.StartAsync();
            await until(60);
            await one.StopAsync();
            for (int i = 100; i < 130; i++) await books.CreateItemAsync(NewBook(i));
            await until(90);
            await two.StopAsync();
            long lag = (await All(books.GetChangeFeedEstimator("p", leases).GetCurrentStateIterator()))
                .Sum(state => state.EstimatedLag);
            Equal(lag, 0L);
        });
    }
}
