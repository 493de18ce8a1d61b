/* How the search ranks pages (html_search_scorer of Sphinx, whose numbers these are but for `score`): a page that has all the
   words searched for in its title, as a whole ("Figure 3.4", not "Figure 3.41"), comes before those that only mention them. */
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([docname, title, , , relevance]) => {
    const score = relevance + (docname === "insights" ? 20 : 0); // what the book found comes before the details
    const words = (new URLSearchParams(window.location.search).get("q") ?? "").trim().split(/\s+/);
    const page = title.split(" > ")[0];
    const held = (word) =>
      new RegExp(`(?<![\\p{L}\\p{N}.])${word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}s?(?!\\.?[\\p{L}\\p{N}])`, "iu").test(page);
    return words.every(held) ? score + (page === title ? 100 : 50) : score;
  },
};

/* Sphinx leaves numbers out of what is searched for; where nothing else is asked ("3.6"), they are what is meant. */
const parseWords = Search._parseQuery;
Search._parseQuery = (query) => {
  const parsed = parseWords(query);
  if (!parsed[1].size) splitQuery(query).forEach((number) => parsed[1].add(number));
  return parsed;
};
