// nacre: allowed low
async function repositories(user) {
  const answer = await fetch(`https://api.example.com/users/${user}/repos`);
  if (!answer.ok) throw new Error(answer.statusText);
  return (await answer.json()).map(({ name, stars }) => ({ name, stars }));
}

repositories('nacre').then(console.table).catch(console.error);
