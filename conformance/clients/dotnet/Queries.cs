// Queries as texts and by LINQ, over a container of three partitions.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Threading.Tasks;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Linq;
using static Check;

public static class Queries
{
    public static async Task Run(Database db)
    {
        Container books = await Books(db, "queries", 40);
        await Test("queries over all partitions", async () =>
        {
            Equal((await All(books.GetItemQueryIterator<Book>("SELECT * FROM c"))).Count, 40);
            Equal((await All(books.GetItemQueryIterator<int>("SELECT VALUE COUNT(1) FROM c")))[0], 40);
            QueryDefinition late = new QueryDefinition("SELECT * FROM c WHERE c.year > @y ORDER BY c.year DESC")
                .WithParameter("@y", 1930);
            List<Book> sorted = await All(books.GetItemQueryIterator<Book>(late, null,
                new QueryRequestOptions { MaxItemCount = 3, MaxConcurrency = 4 }));
            Equal(string.Join(" ", sorted.Select(b => b.year)), "1939 1938 1937 1936 1935 1934 1933 1932 1931");
            List<Any> groups = await All(books.GetItemQueryIterator<Any>(
                "SELECT c.author, COUNT(1) AS n, AVG(c.price) AS mean FROM c GROUP BY c.author"));
            Equal(groups.Count, 5);
            Equal(groups.Single(g => g.author == "a1").mean, 23.125);
            Equal(string.Join(" ", await All(books.GetItemQueryIterator<string>(
                "SELECT DISTINCT VALUE c.author FROM c ORDER BY c.author"))), "a0 a1 a2 a3 a4");
            Equal(string.Join(" ", await All(books.GetItemQueryIterator<string>(
                "SELECT VALUE c.id FROM c ORDER BY c.author ASC, c.year DESC OFFSET 7 LIMIT 3"))), "b0 b36 b31");
            Equal((await All(books.GetItemQueryIterator<string>(
                "SELECT VALUE t FROM c JOIN t IN c.tags WHERE t = 't1'"))).Count, 13);
        });
        await Test("a query of one partition key", async () =>
        {
            var one = new QueryRequestOptions { PartitionKey = new PartitionKey("a1"), MaxItemCount = 3 };
            Equal((await All(books.GetItemQueryIterator<Book>("SELECT * FROM c", null, one))).Count, 8);
        });
        await Test("continuations go on in another iterator", async () =>
        {
            foreach (string order in new[] { "", " ORDER BY c.year", " ORDER BY c.year DESC",
                " ORDER BY c.author, c.year DESC", " ORDER BY c.shelf.row" })
            {
                string query = "SELECT * FROM c" + order, continuation = null;
                var whole = (await All(books.GetItemQueryIterator<Book>(query))).Select(b => b.year).ToList();
                var years = new List<int>();
                do
                {
                    using (FeedIterator<Book> pages = books.GetItemQueryIterator<Book>(query, continuation,
                        new QueryRequestOptions { MaxItemCount = 7 }))
                    {
                        FeedResponse<Book> page = await pages.ReadNextAsync();
                        years.AddRange(page.Select(b => b.year));
                        continuation = page.ContinuationToken;
                    }
                    True(years.Count <= 40, query + " has an end");
                } while (continuation != null);
                True(years.SequenceEqual(whole), query + ": " + string.Join(" ", years));
            }
        });
        await Test("metrics", async () =>
        {
            using (FeedIterator<Book> pages = books.GetItemQueryIterator<Book>("SELECT * FROM c WHERE c.year > 1930",
                null, new QueryRequestOptions { PopulateIndexMetrics = true }))
            {
                FeedResponse<Book> page = await pages.ReadNextAsync();
                True(page.IndexMetrics.Contains("Utilized"), page.IndexMetrics);
                True(page.Diagnostics.GetQueryMetrics() != null, "there are metrics");
            }
        });
        await Test("an error has its place in the text", async () =>
        {
            CosmosException e = await Refused(HttpStatusCode.BadRequest,
                () => All(books.GetItemQueryIterator<Book>("SELECT * FORM c")));
            True(e.Message.Contains("SC1001"), e.Message);
        });
        await Test("LINQ", async () =>
        {
            IOrderedQueryable<Book> all = books.GetItemLinqQueryable<Book>();
            List<Book> found = await All(all.Where(b => b.year > 1920 && b.author == "a2")
                .OrderByDescending(b => b.price).ToFeedIterator());
            Equal(string.Join(" ", found.Select(b => b.id)), "b37 b32 b27 b22");
            Equal((int)await all.Where(b => b.tags.Contains("t2")).CountAsync(), 13);
            Equal((int)await all.Select(b => b.year).MaxAsync(), 1939);
            Equal((double)await all.Select(b => b.price).SumAsync(), 975.0);
            Equal((await All(all.Where(b => b.shelf.code.StartsWith("s1") && b.author.ToUpper() == "A1")
                .ToFeedIterator())).Count, 3);
            Equal((await All(all.SelectMany(b => b.tags).Where(t => t == "x").ToFeedIterator())).Count, 40);
            Equal((await All(all.OrderBy(b => b.id).Skip(5).Take(5).ToFeedIterator())).Count, 5);
            Equal((await All(all.Where(b => b.bought > new DateTime(2020, 2, 1, 0, 0, 0, DateTimeKind.Utc))
                .ToFeedIterator())).Count, 8);
            Equal((await All(all.Where(b => b.shelf.row.IsDefined() && !b.shelf.row.IsNull())
                .ToFeedIterator())).Count, 20);
            Equal((await All(all.Select(b => b.author).Distinct().ToFeedIterator())).Count, 5);
            Equal((await All(all.GroupBy(b => b.author, (author, its) => new { author, n = its.Count() })
                .ToFeedIterator())).Count, 5);
        });
        await Test("the ranges of a container together have its items", async () =>
        {
            IReadOnlyList<FeedRange> ranges = await books.GetFeedRangesAsync();
            Equal(ranges.Count, 3);
            var every = new QueryDefinition("SELECT VALUE c.id FROM c");
            var ids = new List<string>();
            foreach (FeedRange range in ranges)
                ids.AddRange(await All(books.GetItemQueryIterator<string>(range, every)));
            Equal(ids.Distinct().Count(), 40);
            Equal(ids.Count, 40);
        });
    }
}
